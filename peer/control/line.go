package control

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

const (
	// maxEvent bounds a line in a job's event stream, and the output data behind it, in bytes. The
	// placement or view of the largest job fits.
	maxEvent = 16 << 20

	// readAhead is the size of the read buffer for a job's event stream, in bytes.
	readAhead = 128 << 10
)

// A line is one event in the stream to the p2prun that follows a job over the control socket. It is written
// as a line of JSON; the Data of an output event follows it as raw bytes.
type line struct {
	Number  uint64 `json:"number"`            // acknowledged together with all lines before it, or 0 if not acknowledged
	Record  uint64 `json:"record,omitempty"`  // see submit.Event
	Records uint64 `json:"records,omitempty"` // likewise
	Size    int    `json:"size,omitempty"`    // of the Data behind the line
	submit.Event
}

func newLine(n submit.Numbered) line {
	return line{Number: n.Number, Record: n.Record, Records: n.Records, Event: n.Event}
}

var errLongLine = errors.New("a line is too long")

// write writes the line, followed by the raw data of an output event. As JSON, that data would take several
// times as long.
func (l line) write(w io.Writer) error {
	var data []byte
	if l.Kind == submit.OutputEvent {
		data, l.Data, l.Size = l.Data, nil, len(l.Data)
	}
	if err := json.NewEncoder(w).Encode(l); err != nil || len(data) == 0 {
		return err
	}
	_, err := w.Write(data)
	return err
}

// readLine reads a line as written by line.write. The error is errBroken at the end of the stream.
func readLine(r *bufio.Reader) (l line, err error) {
	text, err := readText(r)
	if err != nil {
		return line{}, err
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return line{}, fmt.Errorf("read the job's events: %w", err)
	}
	l.Event.Record, l.Event.Records = l.Record, l.Records
	if l.Size < 0 || l.Size > maxEvent {
		return line{}, fmt.Errorf("read the job's events: output of %d bytes", l.Size)
	}
	if l.Size > 0 {
		l.Data = make([]byte, l.Size)
		if _, err := io.ReadFull(r, l.Data); err != nil {
			return line{}, errBroken
		}
	}
	return l, nil
}

// readText reads a whole line of text, which is valid until the next read.
func readText(r *bufio.Reader) ([]byte, error) {
	text, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		if err != nil {
			err = errBroken
		}
		return text, err
	}
	long := append([]byte(nil), text...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if text, err = r.ReadSlice('\n'); len(long)+len(text) > maxEvent {
			return nil, fmt.Errorf("read the job's events: %w", errLongLine)
		}
		long = append(long, text...)
	}
	if err != nil {
		err = errBroken
	}
	return long, err
}

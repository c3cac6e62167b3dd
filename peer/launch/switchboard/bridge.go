package switchboard

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// A source is where a bridge reads: the pipe from a process, or the stream from another peer.
type source interface {
	io.ReadCloser
	Reset() error // closes both directions at once; may be called at any time
}

// A sink is where a bridge writes.
type sink interface {
	io.WriteCloser
	CloseWrite() error // signals the end of the data
	// AwaitClose returns when the other end has closed. The error is nil if the other end read everything and
	// sent nothing back.
	AwaitClose() error
	Reset() error
}

// carry copies a channel's bytes from src to dst until src ends. It returns when dst has closed too, after
// reading everything. It resets both sides when ctx ends, when either side breaks, or when dst closes
// early. The sender then knows that the channel is broken.
func carry(ctx context.Context, dst sink, src source) {
	reset := func() {
		dst.Reset()
		src.Reset()
	}
	stop := context.AfterFunc(ctx, reset)
	defer stop()
	left := make(chan error, 1)
	go func() { left <- dst.AwaitClose() }() // ends with dst, which is closed or reset below
	copied := make(chan error, 1)
	go func() { // ends with src, which is closed or reset below
		_, err := io.Copy(dst, src) // by the pipe's own method where possible, which provides the buffer
		copied <- err
	}()
	select {
	case err := <-copied:
		if err == nil {
			err = dst.CloseWrite()
		}
		if err != nil {
			reset()
		}
		if <-left != nil {
			reset()
		}
	case <-left:
		reset()
		<-copied
	}
	dst.Close()
	src.Close()
}

// A streamEnd is one side of a stream to another peer.
type streamEnd struct{ network.Stream }

var errUnexpectedData = errors.New("unexpected data on a channel")

// AwaitClose waits for the end of the other direction, which carries no data.
func (s streamEnd) AwaitClose() error {
	n, err := s.Read(make([]byte, 1))
	switch {
	case n > 0:
		return errUnexpectedData
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

// inPipe and outPipe are this peer's ends of the pipes of a process.
type (
	inPipe  struct{ *channel.PipeReader }
	outPipe struct{ *channel.PipeWriter }
)

func (p inPipe) Reset() error  { return p.Close() }
func (p outPipe) Reset() error { return p.Close() }

var errUnread = errors.New("the process has not read everything")

// AwaitClose waits until the process has closed its end.
func (p outPipe) AwaitClose() error {
	<-p.Gone()
	if !p.Drained() {
		return errUnread
	}
	return nil
}

// openIn returns a pipe on which a process writes: this peer's end, and the process's end.
func openIn() (inPipe, *os.File, error) {
	theirs, file, err := channel.NewPipe(true)
	if err != nil {
		return inPipe{}, nil, err
	}
	defer file.Close()
	ours, err := channel.OpenPipeReader(file, false)
	if err != nil {
		theirs.Close()
		return inPipe{}, nil, err
	}
	return inPipe{ours}, theirs, nil
}

// openOut returns a pipe from which a process reads: this peer's end, and the process's end.
func openOut() (outPipe, *os.File, error) {
	file, theirs, err := channel.NewPipe(false)
	if err != nil {
		return outPipe{}, nil, err
	}
	defer file.Close()
	ours, err := channel.OpenPipeWriter(file)
	if err != nil {
		theirs.Close()
		return outPipe{}, nil, err
	}
	return outPipe{ours}, theirs, nil
}

// PacedRead is the number of bytes that are read at once from a process whose upload is limited.
const PacedRead = 32 << 10

// A pacedSource delays the reading of a process's messages.
type pacedSource struct {
	source
	ctx  context.Context
	pace func(ctx context.Context, n int) error
}

func (s pacedSource) Read(b []byte) (int, error) {
	n, err := s.source.Read(b[:min(len(b), PacedRead)])
	if wait := s.pace(s.ctx, n); wait != nil {
		return n, wait
	}
	return n, err // passes io.EOF through
}

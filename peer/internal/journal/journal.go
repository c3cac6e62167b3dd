package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
)

// An Entry is one job's part on this peer.
type Entry struct {
	Job       string    `json:"job"`
	Submitter string    `json:"submitter"` // peer ID; it has signed the job
	Class     string    `json:"class"`     // of submitters, in the owner's policy
	Kind      string    `json:"kind"`      // of the program
	Program   string    `json:"program"`   // name
	Digest    string    `json:"digest"`    // SHA-256 of the program, hexadecimal
	Signed    string    `json:"signed"`    // SHA-256 of the job as its submitter has signed it, hexadecimal
	Processes int       `json:"processes"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until,omitzero"` // zero: it runs, or the peer was killed before it ended
	Ended     string    `json:"ended,omitempty"`

	CPU    time.Duration `json:"cpu"`    // of all processes, in nanoseconds, user and system
	Memory int64         `json:"memory"` // of the largest process at its largest, in bytes; 0: not known
	Staged int64         `json:"staged"` // bytes of program and inputs
	Output int64         `json:"output"` // bytes on standard output and error
}

// maxLine bounds a line, in bytes: names come from strangers, and are bounded before.
const maxLine = 64 << 10

// A Journal is written by one peer. Its methods are safe for concurrent use.
type Journal struct {
	path  string
	limit int64 // bytes

	mu   sync.Mutex
	file *os.File
	size int64
}

// Open opens or makes the journal at path, of no more than limit bytes.
func Open(path string, limit int64) (*Journal, error) {
	j := &Journal{path: path, limit: limit}
	return j, j.open()
}

func (j *Journal) open() error {
	f, err := os.OpenFile(j.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	size, err := f.Seek(0, 2)
	if err != nil {
		return errors.Join(fmt.Errorf("open the journal: %w", err), f.Close())
	}
	j.file, j.size = f, size
	if last := make([]byte, 1); size > 0 {
		if _, err := f.ReadAt(last, size-1); err == nil && last[0] != '\n' { // whoever wrote it was killed
			return j.write([]byte{'\n'}, false)
		}
	}
	return nil
}

// Close closes the file.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.Close()
}

// Add writes an entry, in place of an earlier one of the same job and time.
func (j *Journal) Add(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	if len(line) >= maxLine {
		return fmt.Errorf("write the journal: entry of %d bytes", len(line))
	}
	line = append(line, '\n')
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.size+int64(len(line)) > j.limit {
		if err := j.shorten(); err != nil {
			return err
		}
	}
	return j.write(line, !e.Until.IsZero()) // of one that begins somebody waits
}

// write appends a line; with sync it outlives the machine, too.
func (j *Journal) write(line []byte, sync bool) error {
	n, err := j.file.Write(line)
	j.size += int64(n)
	if err == nil && sync {
		err = j.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// shorten leaves the newest entries, of half the limit. A crash leaves the old file or the new one.
func (j *Journal) shorten() error {
	data, err := os.ReadFile(j.path)
	if err != nil {
		return fmt.Errorf("shorten the journal: %w", err)
	}
	keep := data[max(0, len(data)-int(j.limit/2)):]
	if len(keep) < len(data) {
		_, keep, _ = bytes.Cut(keep, []byte{'\n'}) // the first line may be half a one
	}
	if err := atomicfile.Write(j.path, keep); err != nil {
		return fmt.Errorf("shorten the journal: %w", err)
	}
	if err := j.file.Close(); err != nil {
		return fmt.Errorf("shorten the journal: %w", err)
	}
	return j.open()
}

// Read returns what stands in the journal at path, oldest first; nothing if there is none. The
// peer may be writing it. Lines that make no sense, such as one that was cut, are passed over.
func Read(path string) ([]Entry, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	defer f.Close()
	type name struct {
		job   string
		since int64
	}
	var entries []Entry
	at := make(map[name]int)
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e Entry
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Job == "" {
			continue
		}
		n := name{e.Job, e.Since.UnixNano()}
		if i, again := at[n]; again {
			entries[i] = e
			continue
		}
		at[n] = len(entries)
		entries = append(entries, e)
	}
	if err := lines.Err(); err != nil {
		return entries, fmt.Errorf("read the journal: %w", err)
	}
	return entries, nil
}

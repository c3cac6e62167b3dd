package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// An Entry is the record of one job on this peer.
type Entry struct {
	Job       string    `json:"job"`
	Submitter string    `json:"submitter"` // ID of the peer that has signed the job
	Class     string    `json:"class"`     // class of the submitter, in the owner's policy
	Kind      string    `json:"kind"`      // kind of the program
	Program   string    `json:"program"`   // name
	Digest    string    `json:"digest"`    // SHA-256 of the program, hexadecimal
	Signed    string    `json:"signed"`    // SHA-256 of the job as signed by its submitter, hexadecimal
	Processes int       `json:"processes"`
	Since     time.Time `json:"since"`
	Until     time.Time `json:"until,omitzero"` // zero if it runs, or if the peer was killed before it ended
	Ended     string    `json:"ended,omitempty"`

	CPU    time.Duration `json:"cpu"`    // user and system time of all processes, in nanoseconds
	Memory int64         `json:"memory"` // peak memory of the largest process, in bytes, or 0 if not known
	Staged int64         `json:"staged"` // bytes of program and inputs
	Output int64         `json:"output"` // bytes on standard output and error
}

// maxLine bounds a line, in bytes. Names from strangers are bounded earlier.
const maxLine = 64 << 10

// A Journal is the journal of one running peer. Its methods are safe for concurrent use.
type Journal struct {
	path  string
	limit int64 // bytes

	mu   sync.Mutex
	file *os.File
	size int64
}

// Open opens or creates the journal at path, of at most limit bytes.
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
		if _, err := f.ReadAt(last, size-1); err == nil && last[0] != '\n' { // the writer was killed
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

// Add writes an entry. It replaces an earlier one of the same job and start time.
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
	return j.write(line, !e.Until.IsZero()) // no sync for a job that begins: its start waits for Add
}

// write appends a line; with sync it survives a crash of the machine.
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

// shorten keeps the newest entries, up to half the limit. After a crash, the file is either the old or the
// new one.
func (j *Journal) shorten() error {
	data, err := os.ReadFile(j.path)
	keep := data[max(0, len(data)-int(j.limit/2)):]
	if len(keep) < len(data) {
		_, keep, _ = bytes.Cut(keep, []byte{'\n'}) // the first line may be incomplete
	}
	if err == nil {
		err = atomicfile.Write(j.path, keep)
	}
	if err == nil {
		err = j.file.Close()
	}
	if err != nil {
		return fmt.Errorf("truncate the journal: %w", err)
	}
	return j.open()
}

// Read returns the entries of the journal at path, oldest first, or none if there is no file. The peer may be
// writing it. Read skips invalid lines, such as an incomplete one.
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

// OfHome returns the jobs that the peer of the home dir has run, newest first. The peer need not be running. The
// error is a *homedir.Error.
func OfHome(dir string) ([]Entry, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, &homedir.Error{Home: dir, Err: err}
	}
	entries, err := Read(homedir.Dir(abs).Journal())
	if err != nil {
		return nil, &homedir.Error{Home: abs, Err: err}
	}
	slices.Reverse(entries)
	return entries, nil
}

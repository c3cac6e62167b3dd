package messagelog

import (
	"fmt"
	"maps"
	"os"
	"sync"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Log is the message log of a process: the messages of other ranks and the outcomes that have
// reached it, in order of arrival. A checkpoint of the program replaces the part of the log since the
// program's first checkpoint. Several goroutines may call the methods of a Log.
//
//	prologue, up to the first checkpoint | the last checkpoint | records after it
//
// The log is either complete or dropped. It is dropped when it would exceed its limit, or when a
// file cannot be written, or not fast enough. A prologue that has ended is kept, so that another
// checkpoint can complete the log again. Without such a prologue, the log is dropped permanently.
type Log struct {
	dir   string
	limit uint64 // in bytes

	mu       sync.Mutex
	prologue *segment // nil before the first checkpoint
	current  *segment // nil if dropped
	why      string   // reason for a drop that has not been reported yet
	lapsed   bool     // a drop until the next checkpoint was reported; only the first is reported
	resumed  bool     // current begins with a checkpoint
	made     int      // number of checkpoints so far
	readers  map[view.Process]*reader
}

// A reader is a new replica that reads this log. Until it has reached the end, no checkpoint may
// replace the part that it has not read. The reader may repeat a request afterwards, because an
// answer was lost. If the log has a newer checkpoint by then, the reader gets no further answers.
type reader struct {
	made   int // number of checkpoints when it began
	active bool
}

const (
	// MaxTail is the number of bytes that may wait to be written to the file. A log with more drops
	// itself, because the file is too slow.
	MaxTail = 64 << 20

	tailWritten = 256 << 10 // size of the tail, in bytes, at which the tail is written
	maxPiece    = 1 << 20   // maximum number of bytes in one answer to a new replica
)

// New returns an empty log of at most limit bytes, with files in directory dir.
func New(dir string, limit uint64) (*Log, error) {
	l := &Log{dir: dir, limit: limit, readers: make(map[view.Process]*reader)}
	f, err := l.unnamed()
	if err != nil {
		return nil, err
	}
	l.current = &segment{file: f}
	return l, nil
}

// unnamed returns an open file without a name, which no other process can open.
func (l *Log) unnamed() (*os.File, error) {
	f, err := os.CreateTemp(l.dir, ".log-*")
	if err != nil {
		return nil, fmt.Errorf("message log: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("message log: %w", err)
	}
	return f, nil
}

// Keep appends the messages and outcomes that a protocol has delivered to rank self. If write is not
// nil, the caller must call it, in a goroutine that may wait for the disk. If why is not empty, the
// log has been dropped, and the caller must report that. A drop is permanent or lasts until the next
// checkpoint. Only the first drop of the latter kind is reported.
func (l *Log) Keep(out protection.Output, self int) (write func(), why string, permanent bool) {
	if len(out.Deliver)+len(out.Decided) == 0 {
		return nil, "", false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil {
		l.append(out, self)
	}
	why, l.why = l.why, ""
	return l.due(), why, l.prologue == nil
}

// due returns a function that writes the tail if it is long enough, or nil. l.mu is held.
func (l *Log) due() (write func()) {
	if s := l.current; s != nil && !s.busy && len(s.tail) >= tailWritten {
		s.busy = true
		return func() { l.write(s) }
	}
	return nil
}

func (l *Log) append(out protection.Output, self int) {
	s := l.current
	for i := range out.Deliver {
		if m := &out.Deliver[i]; m.Source != self {
			s.tail = append(protection.AppendMessage(s.tail, m), m.Payload...)
		}
	}
	for i := range out.Decided {
		s.tail = protection.AppendOutcome(s.tail, &out.Decided[i])
	}
	switch {
	case l.length() > l.limit:
		l.drop(fmt.Sprintf("the message log exceeds %d bytes", l.limit))
	case len(s.tail) > MaxTail+tailWritten:
		l.drop("messages arrive faster than the disk writes them")
	}
}

func (l *Log) length() uint64 { return l.prologue.length() + l.current.length() }

// drop drops the log. l.mu is held.
func (l *Log) drop(why string) {
	l.current.close()
	if l.current = nil; !l.lapsed {
		l.why, l.lapsed = why, l.prologue != nil
	}
}

// write moves the tail of s into its file until the tail is short.
func (l *Log) write(s *segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := s.write(&l.mu); err != nil && s == l.current {
		l.drop(err.Error())
	}
	s.busy = false
}

// Piece returns the bytes that follow a position, for process to, and whether they reach the end. It
// returns nil and false when the log has been dropped, ends before position, or has a newer
// checkpoint than when the process began to read. The byte at position 0 states the kind of
// beginning of the log.
func (l *Log) Piece(to view.Process, position uint64) (b []byte, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.readers[to]
	if r == nil && position == 0 && l.current != nil {
		r = &reader{made: l.made, active: true}
		l.readers[to] = r
	}
	switch {
	case r == nil || r.made != l.made || l.current == nil:
		return nil, false
	case position == 0 && l.resumed:
		return []byte{byte(protection.RecordResumed)}, false
	case position == 0:
		return []byte{byte(protection.RecordStart)}, false
	}
	position--
	if n := l.prologue.length(); position < n {
		b, _ = l.prologue.piece(position, &l.mu)
		return b, false
	} else {
		position -= n
	}
	b, last = l.current.piece(position, &l.mu)
	r.active = r.active && !last
	return b, last
}

// isRead reports whether a live process of view v is reading the log. It forgets readers that are
// not live. l.mu is held.
func (l *Log) isRead(v view.View) bool {
	maps.DeleteFunc(l.readers, func(q view.Process, r *reader) bool { return !v.Live(q) })
	for _, r := range l.readers {
		if r.active {
			return true
		}
	}
	return false
}

// Close drops the log without a report; l may be nil.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.prologue.close()
	l.current.close()
	l.current = nil
}

package engine

import (
	"fmt"
	"maps"
	"os"
	"sync"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A MessageLog is the message log of a process: the messages of other ranks and the outcomes that
// have reached it, in order of arrival. A checkpoint of the program replaces the part of the log
// since the program's first checkpoint.
//
//	prologue, up to the first checkpoint | the last checkpoint | records after it
//
// The log is either complete or dropped. It is dropped when it would exceed its limit, or when a
// file cannot be written, or not fast enough. A prologue that has ended is kept, so that another
// checkpoint can complete the log again. Without such a prologue, the log is dropped permanently.
type MessageLog struct {
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
	logTail  = 256 << 10 // size of the tail, in bytes, at which the tail is written
	logAhead = 64 << 20  // size of the tail, in bytes, at which the file is too slow
	logPiece = 1 << 20   // maximum number of bytes in one answer to a new replica
)

// NewMessageLog returns an empty log of at most limit bytes, with files in directory dir.
func NewMessageLog(dir string, limit uint64) (*MessageLog, error) {
	p := &MessageLog{dir: dir, limit: limit, readers: make(map[view.Process]*reader)}
	f, err := p.unnamed()
	if err != nil {
		return nil, err
	}
	p.current = &segment{file: f}
	return p, nil
}

// unnamed returns an open file without a name, which no other process can open.
func (p *MessageLog) unnamed() (*os.File, error) {
	f, err := os.CreateTemp(p.dir, ".past-*")
	if err != nil {
		return nil, fmt.Errorf("message log: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("message log: %w", err)
	}
	return f, nil
}

// keep appends the messages and outcomes that a protocol has delivered to rank self. If due is not
// nil, the caller must call write with it. If why is not empty, the log has been dropped, and the
// caller must report that. A drop is permanent or lasts until the next checkpoint. Only the first
// drop of the latter kind is reported.
func (p *MessageLog) keep(out protection.Output, self int) (due *segment, why string, permanent bool) {
	if len(out.Deliver)+len(out.Decided) == 0 {
		return nil, "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		p.append(out, self)
	}
	why, p.why = p.why, ""
	return p.due(), why, p.prologue == nil
}

// due returns the segment to write, or nil.
func (p *MessageLog) due() *segment {
	if s := p.current; s != nil && !s.busy && len(s.tail) >= logTail {
		s.busy = true
		return s
	}
	return nil
}

func (p *MessageLog) append(out protection.Output, self int) {
	s := p.current
	for i := range out.Deliver {
		if m := &out.Deliver[i]; m.Source != self {
			s.tail = append(protection.AppendMessage(s.tail, m), m.Payload...)
		}
	}
	for i := range out.Decided {
		s.tail = protection.AppendOutcome(s.tail, &out.Decided[i])
	}
	switch {
	case p.length() > p.limit:
		p.dropLog(fmt.Sprintf("the message log exceeds %d bytes", p.limit))
	case len(s.tail) > logAhead+logTail:
		p.dropLog("messages arrive faster than the disk writes them")
	}
}

func (p *MessageLog) length() uint64 { return p.prologue.length() + p.current.length() }

// dropLog drops the log. p.mu is held.
func (p *MessageLog) dropLog(why string) {
	p.current.close()
	if p.current = nil; !p.lapsed {
		p.why, p.lapsed = why, p.prologue != nil
	}
}

// write moves the tail of s into its file until the tail is short.
func (p *MessageLog) write(s *segment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := s.write(&p.mu); err != nil && s == p.current {
		p.dropLog(err.Error())
	}
	s.busy = false
}

// piece returns the bytes that follow a position, for process to, and whether they reach the end. It
// returns nil and false when the log has been dropped, ends before position, or has a newer
// checkpoint than when the process began to read. The byte at position 0 states the kind of
// beginning of the log.
func (p *MessageLog) piece(to view.Process, position uint64) (b []byte, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.readers[to]
	if r == nil && position == 0 && p.current != nil {
		r = &reader{made: p.made, active: true}
		p.readers[to] = r
	}
	switch {
	case r == nil || r.made != p.made || p.current == nil:
		return nil, false
	case position == 0 && p.resumed:
		return []byte{byte(protection.RecordResumed)}, false
	case position == 0:
		return []byte{byte(protection.RecordStart)}, false
	}
	position--
	if n := p.prologue.length(); position < n {
		b, _ = p.prologue.piece(position, &p.mu)
		return b, false
	} else {
		position -= n
	}
	b, last = p.current.piece(position, &p.mu)
	r.active = r.active && !last
	return b, last
}

// isRead reports whether a live process of view v is reading the log. It forgets readers that are
// not live. p.mu is held.
func (p *MessageLog) isRead(v view.View) bool {
	maps.DeleteFunc(p.readers, func(q view.Process, r *reader) bool { return !v.Live(q) })
	for _, r := range p.readers {
		if r.active {
			return true
		}
	}
	return false
}

// close drops the log without a report; p may be nil.
func (p *MessageLog) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prologue.close()
	p.current.close()
	p.current = nil
}

package engine

import (
	"fmt"
	"maps"
	"os"
	"sync"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Past is the log of what has reached a process from outside: messages of other
// ranks, and outcomes, in the order in which they came. A program's checkpoint takes
// the place of what came between its first checkpoint and this one.
//
//	prologue, up to the first checkpoint | the last checkpoint | what came after it
//
// It is whole or it is nothing: when it would become longer than its limit, or a
// file cannot be written, it is let go; what came before the first checkpoint is kept,
// so that another checkpoint can make it whole again.
type Past struct {
	dir   string
	limit uint64 // bytes

	mu       sync.Mutex
	prologue *segment // nil: there was no checkpoint yet
	current  *segment // nil: let go
	why      string   // it was let go, if that is to be told
	lapsed   bool     // it has been let go until the next checkpoint
	resumed  bool     // current begins with a checkpoint
	made     int      // checkpoints so far
	readers  map[view.Process]*reader
}

// A reader is a new replica that is told this past. While one has not come to the end
// no checkpoint takes the place of what it has still to read. When it asks again
// afterwards, because an answer was lost, and there is another checkpoint now, it cannot
// be told more.
type reader struct {
	made   int // checkpoints when it began
	active bool
}

const (
	pastTail  = 256 << 10 // bytes of the tail after which it is written
	pastAhead = 64 << 20  // and with which the file is too slow
	pastPiece = 1 << 20   // bytes that a new replica gets at once
)

// NewPast returns an empty log of at most limit bytes in files of folder dir.
func NewPast(dir string, limit uint64) (*Past, error) {
	p := &Past{dir: dir, limit: limit, readers: make(map[view.Process]*reader)}
	f, err := p.unnamed()
	if err != nil {
		return nil, err
	}
	p.current = &segment{file: f}
	return p, nil
}

// unnamed returns a file that nobody else can open.
func (p *Past) unnamed() (*os.File, error) {
	f, err := os.CreateTemp(p.dir, ".past-*")
	if err != nil {
		return nil, fmt.Errorf("log for new replicas: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("log for new replicas: %w", err)
	}
	return f, nil
}

// keep appends what a protocol has delivered to rank self and shown to it. The
// caller is to call write with due, if it is not nil, and to tell why the log was let
// go, if it was for good or, which is told once, until the next checkpoint.
func (p *Past) keep(out protection.Output, self int) (due *segment, why string, forGood bool) {
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

// due returns the segment that is to be written, if there is one.
func (p *Past) due() *segment {
	if s := p.current; s != nil && !s.busy && len(s.tail) >= pastTail {
		s.busy = true
		return s
	}
	return nil
}

func (p *Past) append(out protection.Output, self int) {
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
		p.letGo(fmt.Sprintf("its messages are longer than %d bytes", p.limit))
	case len(s.tail) > pastAhead+pastTail:
		p.letGo("they come faster than the disk writes them")
	}
}

func (p *Past) length() uint64 { return p.prologue.length() + p.current.length() }

// letGo gives the log up. p.mu is held.
func (p *Past) letGo(why string) {
	p.current.close()
	if p.current = nil; !p.lapsed {
		p.why, p.lapsed = why, p.prologue != nil
	}
}

// write moves the tail of s into its file until it is short.
func (p *Past) write(s *segment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := s.write(&p.mu); err != nil && s == p.current {
		p.letGo(err.Error())
	}
	s.busy = false
}

// piece returns what follows a position, for process to, and whether it goes to the
// end. It is nothing, and not the end, when the log has been let go or is not so long.
// At position 0 there is but the byte that says how the log begins.
func (p *Past) piece(to view.Process, position uint64) (b []byte, last bool) {
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

// isRead reports whether a process of view v reads the log.
func (p *Past) isRead(v view.View) bool {
	maps.DeleteFunc(p.readers, func(q view.Process, r *reader) bool { return !v.Live(q) })
	for _, r := range p.readers {
		if r.active {
			return true
		}
	}
	return false
}

// close lets go of the log without a word; p may be nil.
func (p *Past) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prologue.close()
	p.current.close()
	p.current = nil
}

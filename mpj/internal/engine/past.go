package engine

import (
	"fmt"
	"os"
	"sync"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// A Past is the log of what has reached a process from outside: messages of other
// ranks, and outcomes, in the order in which they came. It is a file that nobody
// else can open, and the end of it in memory.
//
//	deliver, decide --> tail --> writing --> file
//
// It is whole or it is nothing: when it would become longer than its limit, or the
// file cannot be written, it is let go.
type Past struct {
	limit uint64 // bytes

	mu      sync.Mutex
	file    *os.File // nil: let go
	why     string   // it was let go, if that has not been told
	written uint64   // bytes in the file
	writing []byte   // behind those, on its way to the file
	tail    []byte   // behind those
	spare   []byte   // memory of an earlier tail
	busy    bool     // somebody writes
}

const (
	pastTail  = 256 << 10 // bytes of the tail after which it is written
	pastAhead = 64 << 20  // and with which the file is too slow
	pastPiece = 1 << 20   // bytes that a new replica gets at once
)

// NewPast returns an empty log of at most limit bytes in a file of folder dir.
func NewPast(dir string, limit uint64) (*Past, error) {
	f, err := os.CreateTemp(dir, ".past-*")
	if err != nil {
		return nil, fmt.Errorf("log for new replicas: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("log for new replicas: %w", err)
	}
	return &Past{limit: limit, file: f}, nil
}

// keep appends what a protocol has delivered to rank self and shown to it. The
// caller is to call write if due, and to tell why the log was let go if it was.
func (p *Past) keep(out protection.Output, self int) (due bool, why string) {
	if len(out.Deliver)+len(out.Decided) == 0 {
		return false, ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		p.append(out, self)
	}
	why, p.why = p.why, ""
	if due = p.file != nil && !p.busy && len(p.tail) >= pastTail; due {
		p.busy = true
	}
	return due, why
}

func (p *Past) append(out protection.Output, self int) {
	for i := range out.Deliver {
		if m := &out.Deliver[i]; m.Source != self {
			p.tail = append(protection.AppendMessage(p.tail, m), m.Payload...)
		}
	}
	for i := range out.Decided {
		p.tail = protection.AppendOutcome(p.tail, &out.Decided[i])
	}
	switch {
	case p.length() > p.limit:
		p.letGo(fmt.Sprintf("its messages are longer than %d bytes", p.limit))
	case len(p.tail) > pastAhead+pastTail:
		p.letGo("they come faster than the disk writes them")
	}
}

func (p *Past) length() uint64 { return p.written + uint64(len(p.writing)+len(p.tail)) }

// letGo gives the log up. p.mu is held.
func (p *Past) letGo(why string) {
	p.file.Close()
	p.file, p.tail, p.writing, p.spare = nil, nil, nil, nil
	p.why = why
}

// write moves the tail into the file until it is short.
func (p *Past) write() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.file != nil && len(p.tail) >= pastTail {
		p.writing, p.tail = p.tail, p.spare[:0]
		f, b, at := p.file, p.writing, int64(p.written)
		p.mu.Unlock()
		_, err := f.WriteAt(b, at)
		p.mu.Lock()
		switch {
		case p.file == nil:
		case err != nil:
			p.letGo(err.Error())
		default:
			p.written += uint64(len(b))
			p.writing, p.spare = nil, nil
			if cap(b) <= 2*pastPiece {
				p.spare = b
			}
		}
	}
	p.busy = false
}

// piece returns what follows a position, and whether it goes to the end. It is nothing,
// and not the end, when the log has been let go or is not so long.
func (p *Past) piece(position uint64) (b []byte, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch end := p.length(); {
	case p.file == nil || position > end:
		return nil, false
	case position < p.written:
		b, last = make([]byte, min(pastPiece, p.written-position)), position+pastPiece >= end && p.written == end
		f := p.file
		p.mu.Unlock()
		_, err := f.ReadAt(b, int64(position))
		p.mu.Lock()
		if err != nil {
			return nil, false
		}
		return b, last
	}
	rest := p.writing
	if position -= p.written; position >= uint64(len(p.writing)) {
		rest, position = p.tail, position-uint64(len(p.writing))
		last = len(p.tail)-int(position) <= pastPiece
	}
	rest = rest[position:]
	return append([]byte(nil), rest[:min(pastPiece, len(rest))]...), last
}

// close lets go of the log without a word; p may be nil.
func (p *Past) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		p.letGo("")
	}
}

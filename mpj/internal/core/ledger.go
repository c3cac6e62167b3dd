package core

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A ledger records the active requests of a process. It is used only with checks.
type ledger struct {
	mu      sync.Mutex
	count   int
	entries map[*Request]entry
}

// An entry describes a request. number orders the entries by their start.
type entry struct {
	number int
	text   string
}

// note records r, which has started, with a description of its arguments.
func (r *Request) note(description string) {
	l := &r.comm.process.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = make(map[*Request]entry)
	}
	l.count++
	if at := Caller(); at != "" {
		description += " at " + at
	}
	l.entries[r] = entry{l.count, description}
}

// settle removes r, which was waited for or freed, from the ledger.
func (r *Request) settle() {
	if !r.comm.process.checks {
		return
	}
	l := &r.comm.process.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, r)
}

// Pending describes the active requests in the order of their start. Without checks, it returns
// none.
func (p *Process) Pending() []string {
	l := &p.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	var left []entry
	for _, e := range l.entries {
		left = append(left, e)
	}
	slices.SortFunc(left, func(a, b entry) int { return a.number - b.number })
	texts := make([]string, len(left))
	for i, e := range left {
		texts[i] = e.text
	}
	return texts
}

// describeSend describes a send that starts, or returns "" without checks.
func describeSend(c *Comm, call string, b []byte, dest, tag int) string {
	if !c.process.checks {
		return ""
	}
	return fmt.Sprintf("%s(dest %s, tag %d, %d bytes) of %s", call, rankText(dest), tag, len(b), c.Title())
}

// describeRecv describes a receive that starts, or returns "" without checks.
func describeRecv(c *Comm, call string, b []byte, source, tag int) string {
	if !c.process.checks {
		return ""
	}
	return fmt.Sprintf("%s(source %s, tag %s, room for %d bytes) of %s", call, rankText(source), TagText(tag), len(b), c.Title())
}

func rankText(rank int) string {
	switch rank {
	case AnySource:
		return "AnySource"
	case ProcNull:
		return "ProcNull"
	}
	return fmt.Sprint(rank)
}

// TagText returns the text of a tag, which may be AnyTag.
func TagText(tag int) string {
	if tag == AnyTag {
		return "AnyTag"
	}
	return fmt.Sprint(tag)
}

// ownFrames bounds the number of stack frames of this package and of the interface for programs
// between a call of the program and Caller.
const ownFrames = 16

// Caller returns the file and line of the program's call into package mpj, or "".
func Caller() string {
	pc := make([]uintptr, ownFrames)
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc)])
	for {
		f, more := frames.Next()
		if !ownFunction(f.Function) || strings.HasSuffix(f.File, "_test.go") {
			return position(f)
		}
		if !more {
			return ""
		}
	}
}

// ownFunction reports whether a function belongs to package mpj or to this package.
func ownFunction(name string) bool {
	rest, ok := strings.CutPrefix(name, "github.com/p2pmpi/p2pmpi/mpj")
	return ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "/internal/core."))
}

func position(f runtime.Frame) string {
	if f.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
}

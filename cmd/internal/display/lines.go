package display

import (
	"bytes"
	"fmt"
)

// maxLine bounds how much of a line without an end is held back. A longer line
// goes out in pieces, between which other ranks may write.
const maxLine = 16 << 20

// atomicWrite is how many bytes a write to a pipe takes as a whole (PIPE_BUF, see pipe(7)). A process that is killed
// in the midst of a longer write leaves a part of a line.
const atomicWrite = 4096

// untorn returns how many bytes of text go with one write: whole lines of at most atomicWrite bytes, or one longer line.
func untorn(text []byte) int {
	if len(text) <= atomicWrite {
		return len(text)
	}
	if end := bytes.LastIndexByte(text[:atomicWrite], '\n'); end >= 0 {
		return end + 1
	}
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		return end + 1
	}
	return len(text)
}

// source is one output stream of one rank.
type source struct{ rank, stream int }

// Lines makes whole lines of the pieces in which the ranks' output comes. It
// is pure. The zero Lines is ready.
type Lines struct {
	Tag  bool // put "[rank] " before each line
	open map[source][]byte
}

// Add takes the next piece of a stream and returns what can be written now.
func (l *Lines) Add(rank, stream int, piece []byte) []byte {
	from := source{rank, stream}
	line := piece
	if open := l.open[from]; len(open) > 0 {
		line = append(open, piece...)
	}
	end := bytes.LastIndexByte(line, '\n') + 1
	if len(line)-end > maxLine {
		end = len(line)
	}
	l.keep(from, line[end:])
	return l.tagged(rank, line[:end])
}

func (l *Lines) keep(from source, rest []byte) {
	if l.open == nil {
		l.open = make(map[source][]byte)
	}
	if len(rest) == 0 {
		delete(l.open, from)
		return
	}
	l.open[from] = bytes.Clone(rest)
}

// Rest returns what is left of a stream that has ended without a newline.
func (l *Lines) Rest(rank, stream int) []byte {
	from := source{rank, stream}
	rest := l.open[from]
	delete(l.open, from)
	return l.tagged(rank, rest)
}

// Open returns the ranks whose stream has an unfinished line.
func (l *Lines) Open(stream int) (ranks []int) {
	for s := range l.open {
		if s.stream == stream {
			ranks = append(ranks, s.rank)
		}
	}
	return ranks
}

func (l *Lines) tagged(rank int, text []byte) []byte {
	if !l.Tag || len(text) == 0 {
		return text
	}
	tag := fmt.Appendf(nil, "[%d] ", rank)
	out := make([]byte, 0, len(text)+len(tag)*(bytes.Count(text, []byte("\n"))+1))
	for line := range bytes.Lines(text) {
		out = append(append(out, tag...), line...)
	}
	return out
}

package display

import (
	"bytes"
	"fmt"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// maxLine bounds the part of an incomplete line that is held back. A longer line is written in pieces, and other
// ranks may write between them.
const maxLine = 16 << 20

// atomicWrite is the greatest size of an atomic write to a pipe (PIPE_BUF, see pipe(7)). A process that
// is killed during a longer write may leave an incomplete line.
const atomicWrite = 4096

// writeLen returns how many bytes of text to write at once: whole lines of at most atomicWrite bytes, or
// one longer line.
func writeLen(text []byte) int {
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

// lines joins the pieces of the ranks' output into whole lines. It is pure. The zero value is ready to
// use.
type lines struct {
	Tag  bool // put "[rank] " before each line
	open map[job.Source][]byte
}

// Add adds the next piece of a stream and returns the text that can be written now.
func (l *lines) Add(from job.Source, piece []byte) []byte {
	line := piece
	if open := l.open[from]; len(open) > 0 {
		line = append(open, piece...)
	}
	end := bytes.LastIndexByte(line, '\n') + 1
	if len(line)-end > maxLine {
		end = len(line)
	}
	l.keep(from, line[end:])
	return l.tagged(from.Rank, line[:end])
}

func (l *lines) keep(from job.Source, rest []byte) {
	if l.open == nil {
		l.open = make(map[job.Source][]byte)
	}
	if len(rest) == 0 {
		delete(l.open, from)
		return
	}
	l.open[from] = bytes.Clone(rest)
}

// Incomplete returns the incomplete last line of a stream that has ended.
func (l *lines) Incomplete(from job.Source) []byte {
	rest := l.open[from]
	delete(l.open, from)
	return l.tagged(from.Rank, rest)
}

// Open returns the ranks whose stream has an incomplete line.
func (l *lines) Open(stream job.Stream) (ranks []int) {
	for from := range l.open {
		if from.Stream == stream {
			ranks = append(ranks, from.Rank)
		}
	}
	return ranks
}

func (l *lines) tagged(rank int, text []byte) []byte {
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

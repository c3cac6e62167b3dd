package logtest

import (
	"strings"
	"sync"
)

// A Log keeps what is written to it. It can be read meanwhile; the zero value is empty.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write adds b.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String is all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Warnings counts the lines of zerolog's level warn that name somebody.
func (l *Log) Warnings(name string) (n int) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, name) && strings.Contains(line, `"level":"warn"`) {
			n++
		}
	}
	return n
}

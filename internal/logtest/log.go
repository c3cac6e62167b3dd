package logtest

import (
	"strings"
	"sync"
)

// A Log stores the bytes written to it and can be read concurrently. The zero value is empty.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write appends b.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String returns everything written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Warnings counts the lines of zerolog level warn that contain name.
func (l *Log) Warnings(name string) (n int) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, name) && strings.Contains(line, `"level":"warn"`) {
			n++
		}
	}
	return n
}

package link

import (
	"errors"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
)

// flushTimeout bounds how long Printed waits until the user has all output.
const flushTimeout = time.Second

// Printed returns the number of records that this process has written to standard output and
// standard error, after the user has received them. It returns false if that takes longer than
// flushTimeout, or if a line is incomplete.
func (l *Link) Printed() (records [2]uint64, ok bool) {
	m, err := l.flush(nil, flushTimeout)
	if err != nil || m.Records == nil {
		return records, false
	}
	return *m.Records, true
}

// Skip tells the peer that this process continues after the given numbers of records, which the
// user has. It returns when further output is counted after them.
func (l *Link) Skip(records [2]uint64) error {
	_, err := l.flush(&records, 0)
	return err
}

// flush asks the peer and returns its answer. It waits for at most timeout, or without limit if
// timeout is 0. Only one goroutine at a time may call flush.
func (l *Link) flush(records *[2]uint64, timeout time.Duration) (proclink.Message, error) {
	answer := make(chan proclink.Message, 1)
	l.mu.Lock()
	l.flushes++
	l.flushed = answer
	question := proclink.Message{Type: proclink.Flush, Count: l.flushes, Records: records}
	l.mu.Unlock()
	if err := l.conn.Send(question, nil); err != nil {
		return proclink.Message{}, err
	}
	var late <-chan time.Time
	if timeout > 0 {
		late = time.After(timeout)
	}
	select {
	case m := <-answer:
		return m, nil
	case <-late:
		return proclink.Message{}, errors.New("timed out waiting for the user to receive all output")
	case <-l.ended:
		return proclink.Message{}, errors.New("control socket closed")
	}
}

// takeFlushed passes the answer to the waiting flush, and ignores late answers to earlier ones.
func (l *Link) takeFlushed(m proclink.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Count == l.flushes && l.flushed != nil {
		l.flushed <- m
		l.flushed = nil
	}
}

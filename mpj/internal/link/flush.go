package link

import (
	"errors"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
)

// flushPatience is how long Printed waits for the user to have everything.
const flushPatience = time.Second

// Printed returns how many records of output and of standard error this process has
// written, once the user has them; not ok if that takes longer than flushPatience, or a
// line is not finished.
func (l *Link) Printed() (records [2]uint64, ok bool) {
	m, err := l.flush(nil, flushPatience)
	if err != nil || m.Records == nil {
		return records, false
	}
	return *m.Records, true
}

// Skip tells the peer that this process goes on behind so many records, which the user
// has, and returns when what it prints from now on comes behind them.
func (l *Link) Skip(records [2]uint64) error {
	_, err := l.flush(&records, 0)
	return err
}

// flush asks the peer, and returns its answer. It waits as long as patience, or for ever
// if that is 0. It is for one goroutine at a time.
func (l *Link) flush(records *[2]uint64, patience time.Duration) (proclink.Message, error) {
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
	if patience > 0 {
		late = time.After(patience)
	}
	select {
	case m := <-answer:
		return m, nil
	case <-late:
		return proclink.Message{}, errors.New("the user does not have everything yet")
	case <-l.ended:
		return proclink.Message{}, errors.New("the line to the peer has ended")
	}
}

// takeFlushed hands the answer to who waits for it. An earlier question's is late.
func (l *Link) takeFlushed(m proclink.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Count == l.flushes && l.flushed != nil {
		l.flushed <- m
		l.flushed = nil
	}
}

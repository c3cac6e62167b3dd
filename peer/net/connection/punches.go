package connection

import (
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
)

// maxPeers bounds the number of peers whose last attempt is remembered.
const maxPeers = 1024

// Punches records the attempts of libp2p to connect directly to peers that are connected through a relay. A nil
// Punches records nothing. The methods are safe for concurrent use.
type Punches struct {
	mu   sync.Mutex
	last map[p2ppeer.ID]attempt
}

var _ holepunch.EventTracer = (*Punches)(nil)

// NewPunches returns an empty Punches.
func NewPunches() *Punches { return &Punches{last: make(map[p2ppeer.ID]attempt)} }

// An attempt describes the last attempt to reach one peer directly.
type attempt struct {
	heard        time.Time // time of the last event
	dialled      string    // why the direct dial failed; empty if it succeeded
	punching     bool
	times        int    // attempts to punch a hole since the last success
	failed       string // why the last attempt failed; empty if it succeeded
	begun, ended time.Time
	punched      bool // success, between begun and ended
}

// made reports whether a connection that was opened at the given time is the result of the attempt.
func (a attempt) made(opened time.Time) bool {
	return a.punched && !opened.Before(a.begun.Add(-slack)) && !opened.After(a.ended.Add(slack))
}

// after returns the attempt as it is after one more event.
func (a attempt) after(e *holepunch.Event) attempt {
	at := time.Unix(0, e.Timestamp)
	a.heard = at
	switch what := e.Evt.(type) {
	case *holepunch.DirectDialEvt:
		a.dialled = ""
		if !what.Success {
			a.dialled = dialFailure(what.Error)
		}
	case *holepunch.ProtocolErrorEvt:
		a.punching, a.failed = false, shorten(what.Error)
		a.times++
	case *holepunch.StartHolePunchEvt:
		a.begun, a.punching = at, true
	case *holepunch.EndHolePunchEvt:
		a.ended, a.punching, a.punched = at, false, what.Success
		a.times++
		a.failed = shorten(what.Error)
		if what.Success {
			a.times, a.failed = 0, ""
		}
	}
	return a
}

// Trace implements holepunch.EventTracer.
func (p *Punches) Trace(e *holepunch.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.last[e.Remote]; !known && len(p.last) >= maxPeers {
		p.forgetOldest()
	}
	p.last[e.Remote] = p.last[e.Remote].after(e)
}

// forgetOldest removes the peer whose last event is the oldest. p.mu is held.
func (p *Punches) forgetOldest() {
	var oldest p2ppeer.ID
	for id, a := range p.last {
		if oldest == "" || a.heard.Before(p.last[oldest].heard) {
			oldest = id
		}
	}
	delete(p.last, oldest)
}

func (p *Punches) of(peer p2ppeer.ID) attempt {
	if p == nil {
		return attempt{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last[peer]
}

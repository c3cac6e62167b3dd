package connection

import (
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/holepunch"
)

// maxPeers bounds the peers whose last attempt is remembered.
const maxPeers = 1024

// Punches remembers what has come of libp2p's attempts to reach peers directly that are
// connected through a relay. A nil one remembers nothing. Its methods are safe for
// concurrent use.
type Punches struct {
	mu   sync.Mutex
	last map[p2ppeer.ID]attempt
}

var _ holepunch.EventTracer = (*Punches)(nil)

// NewPunches returns one that has seen nothing.
func NewPunches() *Punches { return &Punches{last: make(map[p2ppeer.ID]attempt)} }

// An attempt is what has been tried with one peer.
type attempt struct {
	heard        time.Time // the last of it
	dialled      string    // why a direct dial failed, or empty
	punching     bool
	times        int    // that a hole was tried since the last success
	failed       string // why the last one came to nothing, or empty
	begun, ended time.Time
	punched      bool // between begun and ended
}

// made reports whether a connection that was opened then is what the attempt came to.
func (a attempt) made(opened time.Time) bool {
	return a.punched && !opened.Before(a.begun.Add(-slack)) && !opened.After(a.ended.Add(slack))
}

// after returns the attempt after one more event.
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
		a.punching, a.failed = false, brief(what.Error)
		a.times++
	case *holepunch.StartHolePunchEvt:
		a.begun, a.punching = at, true
	case *holepunch.EndHolePunchEvt:
		a.ended, a.punching, a.punched = at, false, what.Success
		a.times++
		a.failed = brief(what.Error)
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

// forgetOldest makes room. mu is held.
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

package engine

import "github.com/p2pmpi/p2pmpi/internal/protection"

// flowLimit is the number of bytes that may be queued, or kept for processes that lack them, before
// a send of an engine with a protocol waits. A higher limit costs memory and hides slow links; a
// lower limit makes every sender wait for the slowest replica.
var flowLimit = 64 << 20 // a variable for tests

// load is the number of bytes that flowLimit limits. e.mu is held.
func (e *Engine) load() int { return e.conns.queued + e.protocol.Retained() }

// relieve ends the waits of sends once the load has fallen below flowLimit. It is called while
// frames are written, so it sends none. e.mu is held.
func (e *Engine) relieve() {
	if len(e.stalled) > 0 && e.load() < flowLimit {
		for _, h := range e.stalled {
			h.full = false
			e.settleHeld(h)
		}
		clear(e.stalled)
		e.stalled = e.stalled[:0]
	}
	e.flush.wake()
}

// protect sends m, whose payload belongs to the protocol from now on.
func (e *Engine) protect(m protection.Message) {
	if m.Dest != e.self.Rank && usedAgain(m.Payload) {
		e.lent[&m.Payload[0]] = 1
	}
	if e.protocol.Retained() <= directLoad {
		e.conns.deferWrites(m.Dest)
	}
	e.step()
	e.flows[m.Dest].sent.add(len(m.Payload))
	e.apply(e.protocol.Send(m))
	e.conns.writeTo(m.Dest)
}

// directLoad bounds the bytes of this process's messages that other processes may lack when a send
// writes its frames itself. It is less than the system buffers for a connection, so the send does
// not wait for a hanging replica.
const directLoad = 32 << 10

// noRank takes the place of a rank where there is none.
const noRank = -1

// usedAgain reports whether a payload's memory is worth reusing.
func usedAgain(payload []byte) bool {
	return len(payload) >= 1<<smallestKept || len(payload) > 0 && cap(payload) == shortPayload
}

// hold counts another user of a payload.
func (e *Engine) hold(payload []byte) {
	if !usedAgain(payload) {
		return
	}
	if n, ok := e.lent[&payload[0]]; ok {
		e.lent[&payload[0]] = n + 1
	}
}

// releasePayload removes a user of a payload. The memory of a payload without users is reused.
func (e *Engine) releasePayload(payload []byte) {
	if !usedAgain(payload) {
		return
	}
	switch n := e.lent[&payload[0]]; n {
	case 0:
	case 1:
		delete(e.lent, &payload[0])
		e.payloads.giveBack(payload)
	default:
		e.lent[&payload[0]] = n - 1
	}
}

package protected

import "github.com/p2pmpi/p2pmpi/mpj/internal/engine"

// retained counts the users of payloads that a send has copied, if their memory will be reused. The
// users are the protocol and the queues that contain the payload. Of the engine, it needs the pool of
// payloads.
type retained struct {
	p     *transport
	users map[*byte]int // by first byte
}

// add begins to count the users of a payload. Its first user is the protocol.
func (r *retained) add(payload []byte) {
	if engine.Reusable(payload) {
		r.users[&payload[0]] = 1
	}
}

// hold counts another user of a payload.
func (r *retained) hold(payload []byte) {
	if !engine.Reusable(payload) {
		return
	}
	if n, ok := r.users[&payload[0]]; ok {
		r.users[&payload[0]] = n + 1
	}
}

// release removes a user of a payload. The memory of a payload without users is reused.
func (r *retained) release(payload []byte) {
	if !engine.Reusable(payload) {
		return
	}
	switch n := r.users[&payload[0]]; n {
	case 0:
	case 1:
		delete(r.users, &payload[0])
		r.p.loop.GiveBack(payload)
	default:
		r.users[&payload[0]] = n - 1
	}
}

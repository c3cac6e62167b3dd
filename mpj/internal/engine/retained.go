package engine

// retained counts the users of payloads that a send has copied, if their memory will be reused. The
// users are the protocol and the queues that contain the payload. Of the engine, it needs the pool of
// payloads.
type retained struct {
	p     *protected
	users map[*byte]int // by first byte
}

// usedAgain reports whether a payload's memory is worth reusing.
func usedAgain(payload []byte) bool {
	return len(payload) >= 1<<smallestKept || len(payload) > 0 && cap(payload) == shortPayload
}

// add begins to count the users of a payload. Its first user is the protocol.
func (r *retained) add(payload []byte) {
	if usedAgain(payload) {
		r.users[&payload[0]] = 1
	}
}

// hold counts another user of a payload.
func (r *retained) hold(payload []byte) {
	if !usedAgain(payload) {
		return
	}
	if n, ok := r.users[&payload[0]]; ok {
		r.users[&payload[0]] = n + 1
	}
}

// release removes a user of a payload. The memory of a payload without users is reused.
func (r *retained) release(payload []byte) {
	if !usedAgain(payload) {
		return
	}
	switch n := r.users[&payload[0]]; n {
	case 0:
	case 1:
		delete(r.users, &payload[0])
		r.p.giveBack(payload)
	default:
		r.users[&payload[0]] = n - 1
	}
}

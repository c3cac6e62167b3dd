package engine

// selfLimit is the longest message of a process to itself, in bytes, that is copied before its
// receive is posted.
const selfLimit = 64 << 10

// toSelf returns a message of this process to itself.
func (e *Engine) toSelf(context uint32, tag int32, payload []byte) message {
	e.selfSeq++
	return message{
		Context: context, Source: e.self.Rank, Tag: tag, Seq: e.selfSeq, Size: len(payload), Payload: payload,
	}
}

// sendToSelf delivers a message to this process if a posted receive matches it, or if it is short
// and within the credit. It reports whether the message was delivered.
func (e *Engine) sendToSelf(context uint32, tag int32, payload []byte) bool {
	b := e.mailbox(context)
	if r := requestOf(b.Claim(e.self.Rank, tag)); r != nil {
		m := e.toSelf(context, tag, payload)
		if r.hold != nil || r.whole {
			m.Payload = duplicate(payload)
			e.give(r, m)
			return true
		}
		r.status = statusOf(m)
		if len(payload) <= len(r.buf) {
			copy(r.buf, payload)
		}
		r.finish()
		return true
	}
	if len(payload) > selfLimit || e.selfBytes+len(payload) > eagerCredit {
		return false
	}
	e.selfBytes += len(payload)
	b.Keep(e.toSelf(context, tag, duplicate(payload)))
	return true
}

// copySelf moves the payload of a send of this process to itself into receive r, and ends both.
func (e *Engine) copySelf(r, sender *Request) {
	switch {
	case r.whole:
		r.payload = duplicate(sender.body)
	case len(sender.body) <= len(r.buf):
		copy(r.buf, sender.body)
	}
	e.sentToSelf(sender)
	r.finish()
}

// sentToSelf ends an announced send of this process to itself.
func (e *Engine) sentToSelf(sender *Request) {
	e.bodyDone()
	sender.body, sender.announced = nil, false
	sender.finish()
}

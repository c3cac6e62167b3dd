package engine

// selfLimit is the longest message of a process to itself, in bytes, that is copied before its
// receive is posted.
const selfLimit = 64 << 10

// toSelf returns a message of this process to itself.
func (d *direct) toSelf(context uint32, tag int32, payload []byte) message {
	d.selfSeq++
	return message{
		Context: context, Source: d.rank, Tag: tag, Seq: d.selfSeq, Size: len(payload), Payload: payload,
	}
}

// sendToSelf delivers a message to this process if a posted receive in b, the mailbox of context,
// matches it, or if it is short and within the credit. It reports whether the message was delivered.
func (d *direct) sendToSelf(b *Mailbox, context uint32, tag int32, payload []byte) bool {
	if r := RequestOf(b.Claim(d.rank, tag)); r != nil {
		m := d.toSelf(context, tag, payload)
		if r.hold != nil || r.whole {
			m.Payload = duplicate(payload)
			d.give(r, m)
			return true
		}
		r.status = statusOf(m)
		if len(payload) <= len(r.buf) {
			copy(r.buf, payload)
		}
		r.Finish()
		return true
	}
	if len(payload) > selfLimit || d.selfBytes+len(payload) > EagerCredit {
		return false
	}
	d.selfBytes += len(payload)
	b.Keep(d.toSelf(context, tag, duplicate(payload)))
	return true
}

// copySelf moves the payload of a send of this process to itself into receive r, and ends both.
func (d *direct) copySelf(r, sender *Request) {
	switch {
	case r.whole:
		r.payload = duplicate(sender.body)
	case len(sender.body) <= len(r.buf):
		copy(r.buf, sender.body)
	}
	d.sentToSelf(sender)
	r.Finish()
}

// sentToSelf ends an announced send of this process to itself.
func (d *direct) sentToSelf(sender *Request) {
	d.bodyDone()
	sender.body, sender.announced = nil, false
	sender.Finish()
}

package replication

import (
	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// An audit compares the messages that this process has produced with those that their receivers have received.
type audit struct {
	*core
	outbox   *outbox
	claimed  int         // bytes of all claims
	disputes []dispute   // waiting for this process's vote
	disputed map[int]int // per replica: number of disputes received
}

func newAudit(c *core, o *outbox) *audit {
	return &audit{core: c, outbox: o, disputed: make(map[int]int)}
}

// maxClaimed bounds the bytes of digests that wait for their messages. A replica that is so far behind that it
// reaches this bound does not compare the further messages that receivers acknowledge before it produces them.
const (
	maxClaimed = 16 << 20
	claimCost  = 128 // approximate cost of a claim apart from its digests
)

// compare compares q's claim with the messages kept for q. It keeps the rest of the claim until the
// messages have been produced.
func (a *audit) compare(b *backlog, q view.Process, c claim) {
	r := &b.receivers[q.Replica]
	if c.first > r.acked+1 {
		r.uncompared = true
	}
	c = c.from(r.acked + 1)
	if len(c.digest) == 0 || r.differs {
		return
	}
	if c.first <= b.seq {
		h := newHash(c.key)
		for seq := c.first; seq < c.end() && seq <= b.seq; seq++ {
			if m := b.kept(seq); m != nil {
				a.check(b, q.Replica, &c, &h, m)
			} else {
				r.uncompared = true // q is no longer live, and its messages were dropped
			}
		}
		c = c.from(b.seq + 1)
	}
	switch {
	case len(c.digest) == 0 || r.differs:
	case a.claimed >= maxClaimed:
		r.uncompared = true
	default:
		r.claims = append(r.claims, c)
		a.claimed += claimCost + len(c.digest)
	}
}

// produced compares m, which has just been produced, with claims that have already arrived, and votes on
// the disputes about it.
func (a *audit) produced(b *backlog, m *protection.Message) {
	for k := range b.receivers {
		r := &b.receivers[k]
		if len(r.claims) > 0 && m.Seq >= r.claims[0].first {
			h := newHash(r.claims[0].key)
			a.check(b, k, &r.claims[0], &h, m)
			a.drop(r, m.Seq)
		}
	}
	a.answerDisputes(b, m)
}

// skip drops the claims of messages up to seq, which this process does not produce.
func (a *audit) skip(b *backlog, seq uint64) {
	for k := range b.receivers {
		b.receivers[k].uncompared = true
		a.drop(&b.receivers[k], seq)
	}
}

// drop removes messages up to seq from the claims of a receiver. If a difference is already known, drop removes
// all claims of the receiver.
func (a *audit) drop(r *receiver, seq uint64) {
	for len(r.claims) > 0 && (r.differs || r.claims[0].first <= seq) {
		c := &r.claims[0]
		rest := c.from(seq + 1)
		if len(rest.digest) > 0 && !r.differs {
			a.claimed -= len(c.digest) - len(rest.digest)
			*c = rest
			return
		}
		a.claimed -= claimCost + len(c.digest)
		*c = claim{}
		r.claims = r.claims[1:]
	}
}

// check compares message m with the digest in the claim of a replica of its destination. If they differ, it asks
// the other replicas of this rank for their versions, if there are enough of them for a majority.
func (a *audit) check(b *backlog, replica int, c *claim, h *hash, m *protection.Message) {
	produced, received := h.digest(m), c.of(m.Seq)
	if produced == received || b.receivers[replica].differs {
		return
	}
	b.receivers[replica].differs = true
	d := dispute{stream: stream{b.context, b.dest}, replica: replica, seq: m.Seq, key: c.key, received: received}
	a.vote(d, m, produced)
	if len(a.others) < 2 {
		return
	}
	for _, o := range a.others {
		a.emit(o, a.control(frame.Dispute, b.context, m.Seq, d.encode()))
	}
}

package replication

import (
	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// An audit compares what the receivers of this process's messages have received with what it has
// produced.
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

// maxClaimed bounds the bytes of digests that wait for their messages. Beyond it, a replica that is far
// behind does not compare messages that it has yet to produce and that others have received meanwhile.
const (
	maxClaimed = 16 << 20
	claimCost  = 128 // approximate cost of a claim apart from its digests
)

// compare compares q's claim with the messages kept for q. It keeps the rest of the claim until the
// messages have been produced.
func (a *audit) compare(b *backlog, q view.Process, c claim) {
	if c.first > b.acked[q.Replica]+1 {
		b.blind[q.Replica] = true
	}
	c = c.from(b.acked[q.Replica] + 1)
	if len(c.digest) == 0 || b.differs[q.Replica] {
		return
	}
	if c.first <= b.seq {
		h := newHash(c.key)
		for seq := c.first; seq < c.end() && seq <= b.seq; seq++ {
			if m := b.kept(seq); m != nil {
				a.check(b, q, &c, &h, m)
			} else {
				b.blind[q.Replica] = true // q has left, and its messages were dropped
			}
		}
		c = c.from(b.seq + 1)
	}
	switch {
	case len(c.digest) == 0 || b.differs[q.Replica]:
	case a.claimed >= maxClaimed:
		b.blind[q.Replica] = true
	default:
		b.claims[q.Replica] = append(b.claims[q.Replica], c)
		a.claimed += claimCost + len(c.digest)
	}
}

// produced compares m, which has just been produced, with claims that have already arrived, and votes on
// the disputes about it.
func (a *audit) produced(b *backlog, m *protection.Message) {
	for k, cs := range b.claims {
		if len(cs) > 0 && m.Seq >= cs[0].first {
			h := newHash(cs[0].key)
			a.check(b, view.Process{Rank: b.dest, Replica: k}, &cs[0], &h, m)
			a.drop(b, k, m.Seq)
		}
	}
	a.answerDisputes(b, m)
}

// skip drops the claims of messages up to seq, which this process does not produce itself.
func (a *audit) skip(b *backlog, seq uint64) {
	for k := range b.claims {
		b.blind[k] = true
		a.drop(b, k, seq)
	}
}

// drop removes messages up to seq from the claims of replica k of the destination. If a difference is
// known, it removes all its claims.
func (a *audit) drop(b *backlog, k int, seq uint64) {
	for len(b.claims[k]) > 0 && (b.differs[k] || b.claims[k][0].first <= seq) {
		c := &b.claims[k][0]
		rest := c.from(seq + 1)
		if len(rest.digest) > 0 && !b.differs[k] {
			a.claimed -= len(c.digest) - len(rest.digest)
			*c = rest
			return
		}
		a.claimed -= claimCost + len(c.digest)
		*c = claim{}
		b.claims[k] = b.claims[k][1:]
	}
}

// check compares message m with the digest in q's claim. On a difference it asks the other replicas what
// they have produced, if there are enough of them for a majority.
func (a *audit) check(b *backlog, q view.Process, c *claim, h *hash, m *protection.Message) {
	produced, received := h.digest(m), c.of(m.Seq)
	if produced == received || b.differs[q.Replica] {
		return
	}
	b.differs[q.Replica] = true
	d := dispute{stream: stream{b.context, b.dest}, replica: q.Replica, seq: m.Seq, key: c.key, received: received}
	a.vote(d, m, produced)
	if len(a.others) < 2 {
		return
	}
	for _, o := range a.others {
		a.emit(o, a.control(frame.Dispute, b.context, m.Seq, d.encode()))
	}
}

package replication

import (
	"encoding/binary"
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A seal holds the digests of the messages of one stream that have arrived since the last
// acknowledgement, and their key.
type seal struct {
	key     key
	hash    hash
	digests [ackMessages]digest
	count   int
}

// sealed returns the seal for the next message of a.
func (p *Protocol) sealed(a *arrivals) *seal {
	if a.seal == nil {
		k := keyFor(p.secret, stream{a.context, a.source}, a.next)
		a.seal = &seal{key: k, hash: newHash(k)}
	}
	return a.seal
}

func (s *seal) add(m *protection.Message) {
	s.digests[s.count] = s.hash.digest(m)
	s.count++
}

// encode returns the payload of an acknowledgement: the key and the digests of the last messages that it
// acknowledges, little-endian. It reveals the key, so the seal must not be used afterwards.
func (s *seal) encode() []byte {
	b := make([]byte, 0, keySize+8*s.count)
	b = append(b, s.key[:]...)
	for _, d := range s.digests[:s.count] {
		b = binary.LittleEndian.AppendUint64(b, uint64(d))
	}
	return b
}

// A claim contains the digests of consecutive messages, as received by one receiver.
type claim struct {
	first  uint64 // number of the first message
	key    key
	digest []byte // encoded
}

// decodeClaim decodes the payload, which may be empty, of an acknowledgement of messages up to seq. The
// claim shares its memory.
func decodeClaim(seq uint64, b []byte) (claim, error) {
	if len(b) == 0 {
		return claim{first: seq + 1}, nil
	}
	n := (len(b) - keySize) / 8
	if n < 1 || n > ackMessages || len(b) != keySize+8*n || uint64(n) > seq {
		return claim{}, fmt.Errorf("malformed digests of messages up to number %d, %d bytes", seq, len(b))
	}
	return claim{first: seq - uint64(n) + 1, key: key(b), digest: b[keySize:]}, nil
}

// end returns the number after that of the last message.
func (c *claim) end() uint64 { return c.first + uint64(len(c.digest)/8) }

// of returns the digest of message seq.
func (c *claim) of(seq uint64) digest {
	return digest(binary.LittleEndian.Uint64(c.digest[8*(seq-c.first):]))
}

// from returns the claim without the messages before seq.
func (c claim) from(seq uint64) claim {
	switch {
	case seq >= c.end():
		return claim{first: seq}
	case seq > c.first:
		c.digest = c.digest[8*(seq-c.first):]
		c.first = seq
	}
	return c
}

// maxClaimed bounds the bytes of digests that wait for their messages. Beyond it, a replica that is far
// behind does not compare messages that it has yet to produce and that others have received meanwhile.
const (
	maxClaimed = 16 << 20
	claimCost  = 128 // approximate cost of a claim apart from its digests
)

// compare compares q's claim with the messages kept for q. It keeps the rest of the claim until the
// messages have been produced.
func (p *Protocol) compare(b *backlog, q view.Process, c claim) {
	if c.first > b.acked[q.Replica]+1 {
		b.uncompared[q.Replica] = true
	}
	c = c.from(b.acked[q.Replica] + 1)
	if len(c.digest) == 0 || b.differs[q.Replica] {
		return
	}
	if c.first <= b.seq {
		h := newHash(c.key)
		for seq := c.first; seq < c.end() && seq <= b.seq; seq++ {
			if m := b.kept(seq); m != nil {
				p.check(b, q, &c, &h, m)
			} else {
				b.uncompared[q.Replica] = true // q has left, and its messages were dropped
			}
		}
		c = c.from(b.seq + 1)
	}
	switch {
	case len(c.digest) == 0 || b.differs[q.Replica]:
	case p.outbox.claimed >= maxClaimed:
		b.uncompared[q.Replica] = true
	default:
		b.claims[q.Replica] = append(b.claims[q.Replica], c)
		p.outbox.claimed += claimCost + len(c.digest)
	}
}

// kept returns message seq from the table, where the numbers have no gaps, or nil if it is not there.
func (b *backlog) kept(seq uint64) *protection.Message {
	queue := b.queue[b.head:]
	if len(queue) == 0 || seq < queue[0].m.Seq || seq-queue[0].m.Seq >= uint64(len(queue)) {
		return nil
	}
	return &queue[seq-queue[0].m.Seq].m
}

// compareClaimed compares m, which has just been produced, with claims that have already arrived.
func (p *Protocol) compareClaimed(b *backlog, m *protection.Message) {
	for k, cs := range b.claims {
		if len(cs) == 0 || m.Seq < cs[0].first {
			continue
		}
		c := &cs[0]
		p.outbox.claimed -= 8
		h := newHash(c.key)
		p.check(b, view.Process{Rank: b.dest, Replica: k}, c, &h, m)
		if *c = c.from(m.Seq + 1); len(c.digest) > 0 && !b.differs[k] {
			continue
		}
		p.drop(b, k)
	}
}

// drop removes the first claim of replica k of the destination, or all its claims if a difference is
// known.
func (p *Protocol) drop(b *backlog, k int) {
	for len(b.claims[k]) > 0 {
		p.outbox.claimed -= claimCost + len(b.claims[k][0].digest)
		b.claims[k][0] = claim{}
		if b.claims[k] = b.claims[k][1:]; !b.differs[k] {
			return
		}
	}
}

// check compares message m with the digest in q's claim. On a difference it asks the other replicas what
// they have produced, if there are enough of them for a majority.
func (p *Protocol) check(b *backlog, q view.Process, c *claim, h *hash, m *protection.Message) {
	produced, received := h.digest(m), c.of(m.Seq)
	if produced == received || b.differs[q.Replica] {
		return
	}
	b.differs[q.Replica] = true
	d := dispute{stream: stream{b.context, b.dest}, replica: q.Replica, seq: m.Seq, key: c.key, received: received}
	p.vote(d, m, produced)
	if len(p.others) < 2 {
		return
	}
	for _, o := range p.others {
		p.emit(o, p.control(frame.Dispute, b.context, m.Seq, d.encode()))
	}
}

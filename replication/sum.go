package replication

import (
	"sync"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// When a replica has finalized, the component that makes the views compares its Sums: the number of messages in
// each stream, with their tags and lengths. Payloads are compared as they arrive at receivers (compare.go).
// Messages of a process to itself reach no other process, so their sum includes the payloads.

// open hashes messages of a process to itself. Their digests need no secret, because a process gains nothing by a
// false message to itself. All words are drawn, because the processes of a local job share the hash.
var open = sync.OnceValue(func() *hash {
	h := newHash(key{})
	h.draw(blockBytes)
	return &h
})

// summed returns the digest of a stream extended by m.
func summed(sum uint64, m *protection.Message) uint64 {
	head := uint64(uint32(m.Tag))
	if m.Sync {
		head |= 1 << 32
	}
	sum = protection.Mix(protection.Mix(sum, head), uint64(len(m.Payload)))
	if m.Dest == m.Source {
		sum = protection.Mix(sum, uint64(open().digest(m)))
	}
	return sum
}

// sums returns the sum of each stream on which this process has sent messages, in order.
func (o *outbox) sums() (sums []protection.Sum) {
	for _, b := range o.all {
		if b.seq > 0 {
			sums = append(sums, protection.Sum{Context: b.context, Dest: b.dest, Count: b.seq, Digest: b.sum})
		}
	}
	protection.SortSums(sums)
	return sums
}

package viewgroup

import (
	"crypto/sha256"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

// A chain is the hashes of a log up to each entry, from the entry with index 2 on. The first entry stands
// for the first view and the voters, which all peers know.
type chain [][hashSize]byte

const hashSize = sha256.Size

// at returns the hash of the log up to the entry with an index; ok is false if the log does not have it.
func (c chain) at(index uint64) (hash []byte, ok bool) {
	switch {
	case index == 1:
		return make([]byte, hashSize), true
	case index < 1 || index-2 >= uint64(len(c)):
		return nil, false
	}
	return c[index-2][:], true
}

// append returns the chain of the log after the given entries, which may replace others.
func (c chain) append(entries []*raftpb.Entry) chain {
	for _, e := range entries {
		before, ok := c.at(e.GetIndex() - 1)
		if !ok {
			panic(fmt.Sprintf("entry %d of %d", e.GetIndex(), len(c)+1))
		}
		h := sha256.New()
		h.Write(before)
		fmt.Fprintf(h, "%d %d %v %d ", e.GetIndex(), e.GetTerm(), e.GetType(), len(e.GetData()))
		h.Write(e.GetData())
		c = append(c[:e.GetIndex()-2], [hashSize]byte(h.Sum(nil)))
	}
	return c
}

package core

import (
	"bytes"
	"testing"
)

// FuzzBallot checks that a ballot of another process is valid only if it is about the same lineage, and that no ballot
// has an unknown vote.
func FuzzBallot(f *testing.F) {
	f.Add(uint64(7), ballot(7, used))
	f.Add(uint64(7), ballot(8, unused))
	f.Add(uint64(0), bytes.Repeat([]byte{255}, ballotSize))
	f.Fuzz(func(t *testing.T, l uint64, theirs []byte) {
		if len(theirs) != ballotSize {
			return // a message of another length is an error before
		}
		v := lineage(l).count(theirs)
		if v > invalidVote || v < invalidVote && !bytes.Equal(ballot(lineage(l), v), theirs) {
			t.Errorf("the ballot %v about lineage %d counts as vote %d", theirs, l, v)
		}
	})
}

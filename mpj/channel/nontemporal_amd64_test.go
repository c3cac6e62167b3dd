package channel

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestCopySharedCopiesLikeCopy compares copyShared with copy, for all alignments of both sides and
// lengths around the limits.
func TestCopySharedCopiesLikeCopy(t *testing.T) {
	defer func(before bool) { nonTemporal = before }(nonTemporal)
	random := rand.New(rand.NewPCG(1, 2))
	source := make([]byte, 3*nonTemporalMin)
	for i := range source {
		source[i] = byte(random.Uint32())
	}
	for _, nonTemporal = range []bool{true, false} {
		for range 3000 {
			from := source[random.IntN(lineSize):][:nonTemporalMin-lineSize+random.IntN(3*lineSize)]
			at := random.IntN(lineSize)
			got, want := make([]byte, len(source)), make([]byte, len(source))
			room := nonTemporalMin - lineSize + random.IntN(3*lineSize)
			n, m := copyShared(got[at:][:room], from), copy(want[at:][:room], from)
			if n != m || !bytes.Equal(got, want) {
				t.Fatalf("copy of %d bytes to offset %d of %d: copied %d, want %d with equal content", len(from), at, room, n, m)
			}
		}
	}
}

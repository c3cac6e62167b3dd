package protected

import (
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// FuzzOutcome checks that decoding an arbitrary outcome from another process of the rank neither
// panics nor returns a rank that does not exist.
func FuzzOutcome(f *testing.F) {
	f.Add(encodeOutcome(1, 7))
	f.Add(encodeOutcome())
	f.Add(encodeOutcome(1<<63, 0, 3))
	f.Add([]byte{0x80})
	ds := newStill(f, view.New(3, 2)).decisions
	f.Fuzz(func(t *testing.T, b []byte) {
		if source, _, err := ds.decodeName(b); err == nil && (source < 0 || source > 2) {
			t.Errorf("%x decodes to rank %d", b, source)
		}
		values, err := decodeOutcome(b)
		if err != nil {
			return
		}
		again, err := decodeOutcome(encodeOutcome(values...))
		if err != nil || !slices.Equal(again, values) {
			t.Errorf("%v decodes to %v, %v", values, again, err)
		}
	})
}

package protection

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Sum summarizes all messages that a process has sent to one rank in one context. Replicas that have sent the
// same messages have equal sums. So sums reveal a replica that has sent fewer or more messages than another, even
// if no receiver has a message to compare.
type Sum struct {
	Context uint32 `json:"context"`
	Dest    int    `json:"dest"`   // rank of the destination, possibly the process's own
	Count   uint64 `json:"count"`  // number of messages
	Digest  uint64 `json:"digest"` // digest of the tags and lengths; if Dest is the process's own rank, also of the payloads
}

// MaxSums bounds the number of a process's sums.
const MaxSums = 512

// Clip returns sums with at most MaxSums elements. It combines the sums at the end into one sum, with the context
// and destination of the first of them and a digest of all.
func Clip(sums []Sum) []Sum {
	if len(sums) <= MaxSums {
		return sums
	}
	rest := sums[MaxSums-1]
	for _, s := range sums[MaxSums:] {
		rest.Count += s.Count
		for _, x := range []uint64{uint64(s.Context), uint64(s.Dest), s.Count, s.Digest} {
			rest.Digest = Mix(rest.Digest, x)
		}
	}
	return append(slices.Clone(sums[:MaxSums-1]), rest)
}

// Mix returns a digest of x and the previous digest. It is the step of SplitMix64 (Steele, Lea and Flood, 2014),
// and does not protect against an adversary that chooses x.
func Mix(digest, x uint64) uint64 {
	z := (digest ^ x) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// ValidSums returns an error unless a process of a job with view v can have sent sums.
func ValidSums(sums []Sum, v view.View) error {
	if len(sums) > MaxSums {
		return fmt.Errorf("%d sums, at most %d are allowed", len(sums), MaxSums)
	}
	for i, s := range sums {
		if s.Dest < 0 || s.Dest >= v.N || i > 0 && compareSums(sums[i-1], s) >= 0 {
			return fmt.Errorf("sum of messages to rank %d in context %d is out of order", s.Dest, s.Context)
		}
	}
	return nil
}

func compareSums(a, b Sum) int {
	return cmp.Or(cmp.Compare(a.Context, b.Context), cmp.Compare(a.Dest, b.Dest))
}

// SortSums sorts sums by Context and Dest.
func SortSums(sums []Sum) { slices.SortFunc(sums, compareSums) }

// FirstDifference returns the first elements in which a and b differ. If only one of a and b has such an element,
// the other result has Count 0. ok is false if a and b are equal.
func FirstDifference(a, b []Sum) (x, y Sum, ok bool) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && compareSums(a[0], b[0]) < 0:
			return a[0], Sum{Context: a[0].Context, Dest: a[0].Dest}, true
		case len(a) == 0 || compareSums(a[0], b[0]) > 0:
			return Sum{Context: b[0].Context, Dest: b[0].Dest}, b[0], true
		case a[0] != b[0]:
			return a[0], b[0], true
		}
		a, b = a[1:], b[1:]
	}
	return x, y, false
}

// String describes s for error messages.
func (s Sum) String() string {
	return fmt.Sprintf("%d messages to rank %d on communicator %d (slot %d), digest %016x",
		s.Count, s.Dest, s.Context>>8, s.Context&0xff, s.Digest)
}

package protection

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Sum stands for all messages that a process has sent to one rank in one context.
// Replicas that have sent the same have the same Sum: it is how one is found that has
// stopped earlier, or gone on, when nobody has got a message of it to compare.
type Sum struct {
	Context uint32 `json:"context"`
	Dest    int    `json:"dest"`   // rank; the process's own, or another
	Count   uint64 `json:"count"`  // of messages
	Digest  uint64 `json:"digest"` // of their tags and lengths; to the own rank, of the payloads, too
}

// MaxSums bounds the sums of a process.
const MaxSums = 512

// Clip returns sums with at most MaxSums rows: those at the end become one, in the
// context and with the destination of the first of them, whose digest stands for all.
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

// Mix returns a digest of x and of all that went into digest before. It is the step
// of SplitMix64 (Steele, Lea and Flood, 2014), and no hash against those who choose x.
func Mix(digest, x uint64) uint64 {
	z := (digest ^ x) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// ValidSums reports whether a process of a job with view v can have sent sums.
func ValidSums(sums []Sum, v view.View) error {
	if len(sums) > MaxSums {
		return fmt.Errorf("%d sums, at most %d are taken", len(sums), MaxSums)
	}
	for i, s := range sums {
		if s.Dest < 0 || s.Dest >= v.N || i > 0 && compareSums(sums[i-1], s) >= 0 {
			return fmt.Errorf("sum of messages to rank %d in context %d is out of place", s.Dest, s.Context)
		}
	}
	return nil
}

func compareSums(a, b Sum) int {
	return cmp.Or(cmp.Compare(a.Context, b.Context), cmp.Compare(a.Dest, b.Dest))
}

// SortSums puts sums in order of Context and Dest.
func SortSums(sums []Sum) { slices.SortFunc(sums, compareSums) }

// Unlike returns the first place at which a and b are not the same, as what each has
// there. A row that one lacks has the count 0. ok is false if there is none.
func Unlike(a, b []Sum) (x, y Sum, ok bool) {
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

// String says what s stands for, in words.
func (s Sum) String() string {
	return fmt.Sprintf("%d messages to rank %d on communicator %d (slot %d), digest %016x",
		s.Count, s.Dest, s.Context>>8, s.Context&0xff, s.Digest)
}

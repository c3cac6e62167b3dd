package protected

import (
	"bytes"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engine/direct"
)

// TestSendIsDoneWhenItsReceiversLackLittle checks the conditions for the end of a send: the fastest
// replica is known to lack less than near and no replica is known to lack far, or the replicas that
// lack more have matched the message.
func TestSendIsDoneWhenItsReceiversLackLittle(t *testing.T) {
	limits := windowLimits{near: [classes]int{short: 1000, long: 4000}, far: 10_000}
	all := []bool{true, true, true}
	tests := map[string]struct {
		before  uint64
		long    bool
		taken   [3]uint64
		known   []bool
		live    []bool
		sync    bool
		matched []int
		want    bool
	}{
		"nothing was sent":                                        {known: all, live: all, want: true},
		"all lack less than near":                                 {before: 999, known: all, live: all, want: true},
		"all lack near":                                           {before: 1000, known: all, live: all},
		"long messages have more credit":                          {before: 3999, long: true, known: all, live: all, want: true},
		"the fastest lacks less than near":                        {before: 5000, taken: [3]uint64{4001}, known: all, live: all, want: true},
		"the fastest has failed":                                  {before: 5000, taken: [3]uint64{4001}, known: all, live: []bool{false, true, true}},
		"one has matched the message":                             {before: 5000, known: all, live: all, matched: []int{1}, want: true},
		"one has matched the message and failed":                  {before: 5000, known: all, live: []bool{true, false, true}, matched: []int{1}, want: true},
		"a slow replica lacks far":                                {before: 10_000, taken: [3]uint64{10_000, 10_000}, known: all, live: all},
		"a slow replica that has failed lacks far":                {before: 10_000, taken: [3]uint64{10_000, 10_000}, known: all, live: []bool{true, true, false}, want: true},
		"a new replica lacks far":                                 {before: 10_000, taken: [3]uint64{10_000, 10_000}, known: []bool{true, true, false}, live: all, want: true},
		"a replica that lacks far has matched the message":        {before: 10_000, taken: [3]uint64{10_000, 10_000}, known: all, live: all, matched: []int{2}, want: true},
		"not all replicas that lack far have matched the message": {before: 10_000, known: all, live: all, matched: []int{0, 1}},
		"all replicas that lack far have matched the message":     {before: 10_000, known: all, live: all, matched: []int{0, 1, 2}, want: true},
		"the sender is behind the received bytes":                 {before: 10, taken: [3]uint64{5000, 5000, 5000}, known: all, live: all, want: true},
		"no known replica is live":                                {before: 10_000, known: []bool{false, false, false}, live: all, want: true},
		"synchronous and not matched":                             {sync: true, known: all, live: all},
		"synchronous and matched":                                 {sync: true, known: all, live: all, matched: []int{1}, want: true},
		"synchronous, not matched, no replica has reported":       {sync: true, known: []bool{false, false, false}, live: all},
		"synchronous and matched, a slow replica lacks far": {
			sync: true, before: 10_000, taken: [3]uint64{10_000, 10_000}, known: all, live: all, matched: []int{0},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := waitingSend{before: test.before, sync: test.sync}
			if test.long {
				s.class = long
			}
			var w window
			w.grow(3)
			copy(w.known, test.known)
			for k, n := range test.taken {
				w.taken[k][s.class] = n
			}
			for _, k := range test.matched {
				s.matchedBy(k)
			}
			if got := w.done(&s, &limits, func(k int) bool { return test.live[k] }); got != test.want {
				t.Errorf("done is %v, want %v", got, test.want)
			}
		})
	}
}

// TestReplicasBufferAsMuchAsCredit checks that messages that are buffered without replicas are also
// buffered with replicas.
func TestReplicasBufferAsMuchAsCredit(t *testing.T) {
	limits := windowLimitsFor(1000)
	if got := limits.near[short] - limits.step; got < direct.EagerCredit {
		t.Errorf("%d bytes are buffered, want %d", got, direct.EagerCredit)
	}
	if limits.far < limits.near[short] || limits.far < limits.near[long] {
		t.Errorf("slow replicas may lack %d bytes, the fastest %v", limits.far, limits.near)
	}
}

// TestOldTalliesAreIgnored checks that a report that arrives after a newer one has no effect.
func TestOldTalliesAreIgnored(t *testing.T) {
	var w window
	w.grow(1)
	w.record(0, tally{7, 9})
	w.record(0, tally{5, 10})
	if want := (tally{7, 10}); w.taken[0] != want {
		t.Errorf("got %v, want %v", w.taken[0], want)
	}
}

func FuzzTally(f *testing.F) {
	f.Add(tally{1, 2}.append(nil))
	f.Add(tally{1 << 63, 0}.append(nil))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeTally(b)
		if err == nil && !bytes.Equal(got.append(nil), b) {
			t.Errorf("%x decodes to %v, which encodes to %x", b, got, got.append(nil))
		}
	})
}

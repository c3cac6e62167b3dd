package filetransfer

import (
	"math/rand/v2"
	"testing"
)

// TestT2PlanUnderDrops runs a plan against a peer that answers in order, in
// chunks of any size, over streams that break at any moment. Every byte of every
// content arrives exactly once.
func TestT2PlanUnderDrops(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		var wants []Want
		offsets := map[Digest]int64{}
		left := map[Digest]int64{} // bytes that the asker still lacks
		for i := range 1 + rng.IntN(3*window) {
			d := Digest{byte(i), byte(i >> 8)}
			size := rng.Int64N(50)
			wants = append(wants, Want{Digest: d, Size: size})
			offsets[d] = rng.Int64N(size + 1)
			left[d] = size - offsets[d]
		}
		p := newPlan(wants, offsets)
		for !p.done() {
			if !runStream(t, rng, p, left) && !p.broken() {
				p.failures = 0 // this asker never gives up
			}
		}
		for d, n := range left {
			if n != 0 {
				t.Fatalf("%s lacks %d bytes", d, n)
			}
		}
	}
}

// runStream serves the plan until it is done (true) or the stream breaks.
func runStream(t *testing.T, rng *rand.Rand, p *plan, left map[Digest]int64) bool {
	var queue []need
	for !p.done() {
		for next := p.ask(); len(next) > 0; next = p.ask() {
			queue = append(queue, next...)
		}
		if rng.IntN(500) == 0 {
			return false
		}
		if len(queue) > window || len(queue) == 0 {
			t.Fatalf("%d contents asked for ahead", len(queue))
		}
		q := &queue[0]
		if n, ok := p.front(); !ok || n.Digest != q.Digest || n.offset != q.offset {
			t.Fatalf("front %v at %d, the peer is at %v %d", n.Digest, n.offset, q.Digest, q.offset)
		}
		size := q.Size - q.offset
		if size > 1 && rng.IntN(2) == 0 {
			size = 1 + rng.Int64N(size-1)
		}
		q.offset += size
		last := q.offset == q.Size
		complete, err := p.arrived(size, last)
		if err != nil || complete != last {
			t.Fatalf("%d bytes, last %v: %v, %v", size, last, complete, err)
		}
		left[q.Digest] -= size
		if last {
			queue = queue[1:]
		}
	}
	return true
}

func TestPlanRefusesWhatWasNotAskedFor(t *testing.T) {
	tests := []struct {
		name string
		size int64
		last bool
		ok   bool
	}{
		{"a part", 4, false, true},
		{"all", 10, true, true},
		{"more", 11, true, false},
		{"more without an end", 11, false, false},
		{"less", 9, true, false},
		{"nothing", 0, false, false},
		{"all without an end", 10, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlan([]Want{{Size: 10}}, nil)
			p.ask()
			if _, err := p.arrived(tt.size, tt.last); (err == nil) != tt.ok {
				t.Errorf("got error %v, want ok %v", err, tt.ok)
			}
		})
	}
	if _, err := newPlan([]Want{{Size: 10}}, nil).arrived(1, false); err == nil {
		t.Error("bytes were taken before anything was asked for")
	}
}

// Wrong bytes in a content that was resumed may be those of an earlier stream:
// it gets one more chance from its beginning. A content that came whole has none.
func TestT1PlanRestartsAResumedContentOnce(t *testing.T) {
	w := Want{Digest: Digest{1}, Size: 10}
	p := newPlan([]Want{w}, map[Digest]int64{w.Digest: 4})
	for _, step := range []struct{ offset, size int64 }{{4, 6}, {0, 10}} {
		next := p.ask()
		if len(next) != 1 || next[0].offset != step.offset {
			t.Fatalf("asks for %+v, want offset %d", next, step.offset)
		}
		n, _ := p.front()
		if _, err := p.arrived(step.size, true); err != nil {
			t.Fatal(err)
		}
		if retry := p.rejected(n); retry != (step.offset == 4) {
			t.Fatalf("rejected from offset %d: retry %v", step.offset, retry)
		}
	}
}

func TestPlanGivesUpAPeerThatOnlyBreaks(t *testing.T) {
	p := newPlan([]Want{{Size: 10}}, nil)
	for range 3 { // a byte in between starts the count again
		for range maxFailures - 1 {
			p.ask()
			if !p.broken() {
				t.Fatal("gave up too early")
			}
		}
		p.ask()
		if _, err := p.arrived(1, false); err != nil {
			t.Fatal(err)
		}
	}
	for range maxFailures - 1 {
		p.broken()
	}
	if p.broken() {
		t.Error("did not give up")
	}
}

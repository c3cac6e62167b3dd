package job

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

func records(lines ...string) []byte { return []byte(strings.Join(lines, "")) }

func TestR6RecordsAreEmittedOnceAcrossReplicas(t *testing.T) {
	e := NewEmission(1)
	steps := []struct {
		from  view.Process
		first uint64
		in    []byte
		want  string
	}{
		{proc(0, 0), 0, records("a\n", "b\n"), "a\nb\n"},
		{proc(0, 0), 1, records("b\n", "c\n"), "c\n"},
		{proc(0, 0), 3, records("d, torn by the k"), ""},
		{proc(0, 1), 0, records("a\n", "b\n", "c\n", "d, whole\n"), "d, whole\n"},
		{proc(0, 1), 4, records("tail"), ""},
	}
	for i, s := range steps {
		fresh, _, ok := e.Add(s.from, Stdout, s.first, s.in)
		if got := string(fresh); got != s.want || !ok {
			t.Errorf("step %d: got %q %v, want %q", i, got, ok, s.want)
		}
	}
	v, _ := view.New(1, 2).With(proc(0, 0), view.Failed)
	if got := e.Tail(v, 0, Stdout); string(got) != "tail" {
		t.Errorf("tail %q", got)
	}
	if got := e.Tail(view.New(1, 2), 0, Stdout); got != nil {
		t.Errorf("tail %q of a process that is not the output leader", got)
	}
}

func TestEmissionRefusesAGap(t *testing.T) {
	e := NewEmission(1)
	if _, _, ok := e.Add(proc(0, 0), Stderr, 1, records("b\n")); ok {
		t.Error("record 1 was accepted before record 0")
	}
}

// TestR6RandomFailovers makes replicas with different progress take over from each other at random,
// and compares the output with that of a single replica.
func TestR6RandomFailovers(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 2000 {
		var all [][]byte
		for range rng.IntN(20) {
			all = append(all, []byte(strings.Repeat("x", rng.IntN(5))+"\n"))
		}
		e := NewEmission(1)
		var got []byte
		take := func(k int, from, to uint64) {
			fresh, _, ok := e.Add(proc(0, k), Stdout, from, bytes.Join(all[from:to], nil))
			if !ok {
				t.Fatalf("seed %d: gap at %d", seed, from)
			}
			got = append(got, fresh...)
		}
		for k := range 5 {
			next := e.Next(0, Stdout)
			from := next - min(next, uint64(rng.IntN(3))) // acknowledgements lag
			take(k, from, from+uint64(rng.IntN(len(all)-int(from)+1)))
		}
		take(5, e.Next(0, Stdout), uint64(len(all)))
		if want := bytes.Join(all, nil); !bytes.Equal(got, want) {
			t.Fatalf("seed %d: got %q, want %q", seed, got, want)
		}
	}
}

func TestR6EmissionResumesWhereAnotherProcessStopped(t *testing.T) {
	e := ResumeEmission([][2]uint64{{2, 0}, {5, 0}})
	steps := []struct {
		rank  int
		first uint64
		in    []byte
		want  string
		bad   bool
	}{
		{0, 1, records("b\n", "c\n"), "c\n", false}, // recorded, and not acknowledged
		{0, 4, records("e\n"), "", true},            // a gap
		{1, 6, records("g\n"), "g\n", false},        // acknowledged, and not recorded
		{1, 8, records("i\n"), "", true},
		{1, 7, records("h\n"), "h\n", false},
	}
	for i, s := range steps {
		fresh, _, ok := e.Add(proc(s.rank, 0), Stdout, s.first, s.in)
		if got := string(fresh); got != s.want || ok == s.bad {
			t.Errorf("step %d: got %q %v, want %q", i, got, ok, s.want)
		}
	}
	if got := []uint64{e.Next(0, Stdout), e.Next(1, Stdout)}; got[0] != 3 || got[1] != 8 {
		t.Errorf("next %d, want 3 and 8", got)
	}
}

// TestV4SkipIsBounded checks that a process of a resumed job cannot move the position so far that it starts again.
func TestV4SkipIsBounded(t *testing.T) {
	e := ResumeEmission([][2]uint64{{0, 9}})
	for _, first := range []uint64{math.MaxUint64, 9 + maxUncounted + 1} {
		if _, _, ok := e.Add(proc(0, 1), Stderr, first, records("z\n")); ok || e.Next(0, Stderr) != 9 {
			t.Errorf("record %d is accepted after record 9", first)
		}
	}
	if _, _, ok := e.Add(proc(0, 0), Stderr, 9, records("j\n")); !ok {
		t.Error("the next record is refused")
	}
}

// TestR6LastLineStaysWhenItsProcessFailsAfterTheEnd: a peer is lost between the end of its process and the moment in
// which the user has the output, so its process fails after the job is done.
func TestR6LastLineStaysWhenItsProcessFailsAfterTheEnd(t *testing.T) {
	w, e := running(t, 1, 2), NewEmission(1)
	w.Apply(Exited{Process: proc(0, 1), Exit: wellEnded})
	e.Add(proc(0, 1), Stdout, 0, records("a\n", "tail"))
	lost := w.State.Apply(Lost{Processes: []view.Process{proc(0, 1)}, Why: "is lost"})
	if s := w.Apply(Drained{Process: proc(0, 1)}); s.Result == nil || s.Result.Status != StatusOK {
		t.Fatalf("the job is not done: %+v", s)
	}
	w.agree(lost)
	if !w.View().IsOutputLeader(proc(0, 0)) {
		t.Fatalf("view %+v, want 0.0 as output leader", w.View())
	}
	if got := e.Tail(w.OutputView(), 0, Stdout); string(got) != "tail" {
		t.Errorf("tail %q", got)
	}
}

// TestR6EachProcessOfAResumedJobMayBeginLate: a peer that has been told of records that were not recorded no longer has
// them, even if another replica, which was not told or has written less, is heard first.
func TestR6EachProcessOfAResumedJobMayBeginLate(t *testing.T) {
	for name, first := range map[string][]byte{"nothing": nil, "an earlier record": records("a\n")} {
		e := ResumeEmission([][2]uint64{{0, 0}})
		if _, _, ok := e.Add(proc(0, 0), Stdout, 0, first); !ok {
			t.Fatalf("%s is refused", name)
		}
		if fresh, _, ok := e.Add(proc(0, 1), Stdout, 2, records("c\n")); string(fresh) != "c\n" || !ok {
			t.Errorf("after %s: got %q %v", name, fresh, ok)
		}
		if _, _, ok := e.Add(proc(0, 1), Stdout, 4, records("e\n")); ok {
			t.Errorf("after %s: a gap was accepted", name)
		}
	}
}

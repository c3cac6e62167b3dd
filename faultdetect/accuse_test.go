package faultdetect

import (
	"slices"
	"testing"
)

// TestF2AccusationReachesAllMembersInLogarithmicSteps passes an accusation along each tree, with some
// members failed, in groups of all sizes.
func TestF2AccusationReachesAllMembersInLogarithmicSteps(t *testing.T) {
	for n := 2; n <= 70; n++ {
		for _, tree := range []Tree{Forward, Backward} {
			about, gone := n/3, n/2
			r := ring{n: n}.without(about).without(gone)
			detectors := map[int]*Detector{}
			for i := range n {
				detectors[i] = newDetector(t, n, i)
				detectors[i].ring = ring{n: n}.without(gone)
			}
			root := n - 1
			if r.live() == 0 || root == about || root == gone {
				continue
			}
			var out Output
			detectors[root].pass(&out, about, tree, n-1)
			told := []int{root}
			steps := 0
			for sent := out.Send; len(sent) > 0; steps++ {
				var next []Message
				for _, m := range sent {
					told = append(told, m.To)
					out := Output{}
					detectors[m.To].pass(&out, m.About, m.Tree, m.Reach)
					next = append(next, out.Send...)
				}
				sent = next
			}
			slices.Sort(told)
			if len(told) != r.live() || len(slices.Compact(told)) != r.live() {
				t.Fatalf("n=%d tree %d: %v were notified, want each of %d once", n, tree, told, r.live())
			}
			if steps > HalfRounds(n) {
				t.Errorf("n=%d tree %d: %d steps, want at most %d", n, tree, steps, HalfRounds(n))
			}
		}
	}
}

// settled returns a detector of a group of eight in fast mode that has heard from all members.
func settled(t *testing.T) *Detector {
	t.Helper()
	d, err := New(Config{Members: 8, Period: simPeriod, Offset: offset})
	if err != nil {
		t.Fatal(err)
	}
	for k := range 12 {
		ticks(d, k, k+1)
		for i := 1; i < 8; i++ {
			receive(t, d, Message{From: i, Kind: Pong, Heartbeat: d.heartbeat})
		}
	}
	return d
}

func TestAccusedMemberIsProbedBrieflyAndFailed(t *testing.T) {
	d := settled(t)
	out := receive(t, d, Message{From: 1, Kind: Accuse, Heartbeat: d.heartbeat, About: 5, Reach: 3})
	if got, want := kinds(out), []Kind{Accuse, Accuse, Ping}; !slices.Equal(got, want) || d.State(5) != Suspect {
		t.Fatalf("the detector sent %v, and the accused member is %v; want %v and suspect", got, d.State(5), want)
	}
	if again := receive(t, d, Message{From: 1, Kind: Accuse, Heartbeat: d.heartbeat, About: 5, Reach: 3}); len(again.Send) != 0 {
		t.Errorf("on the same accusation again, the detector sent %+v", again.Send)
	}
	if tickOn(d, 1); d.State(5) != Suspect {
		t.Error("the accused member failed after an eighth of a period")
	}
	if out := tickOn(d, 2); d.State(5) != Failed || slices.Contains(kinds(out), Accuse) {
		t.Errorf("the accused member is %v, and the detector sent %v; want failed, and no accusation of its own", d.State(5), kinds(out))
	}
}

// tickOn makes the next ticks of d.
func tickOn(d *Detector, count int) (all Output) {
	for range count {
		out := d.Tick(d.ticked + d.period/TicksPerPeriod)
		all.Send = append(all.Send, out.Send...)
		all.Verdicts = append(all.Verdicts, out.Verdicts...)
	}
	return all
}

func TestV3AccusedMemberThatAnswersIsLive(t *testing.T) {
	d := settled(t)
	receive(t, d, Message{From: 1, Kind: Accuse, Heartbeat: d.heartbeat, About: 5})
	receive(t, d, Message{From: 5, Kind: Pong, Heartbeat: d.heartbeat})
	if tickOn(d, 2*TicksPerPeriod); d.State(5) != Live {
		t.Errorf("the member that answered is %v, want live", d.State(5))
	}
}

func TestGoneMemberIsFailedAtOnceAndAnnounced(t *testing.T) {
	d := settled(t)
	out := d.gone(5)
	if want := slices.Repeat([]Kind{Accuse}, 6); d.State(5) != Failed || !slices.Equal(kinds(out), want) {
		t.Errorf("the member that is gone is %v, and the detector sent %v; want failed, %v", d.State(5), kinds(out), want)
	}
	for _, unknown := range []int{5, 0, -1, 8} {
		if out := d.gone(unknown); len(out.Send)+len(out.Verdicts) != 0 {
			t.Errorf("a report that %d is gone had the effect %+v", unknown, out)
		}
	}
}

func TestIndirectProbes(t *testing.T) {
	d := settled(t)
	ask := Message{From: 1, Kind: Ask, Heartbeat: d.heartbeat, About: 5}
	if got, want := kinds(receive(t, d, ask)), []Kind{Pong, Ping}; !slices.Equal(got, want) {
		t.Errorf("asked about a member, the detector sent %v, want %v", got, want)
	}
	out := receive(t, d, Message{From: 5, Kind: Pong, Heartbeat: d.heartbeat})
	if len(out.Send) != 1 || out.Send[0].Kind != Confirm || out.Send[0].To != 1 || out.Send[0].About != 5 {
		t.Errorf("after the member's answer, the detector sent %+v, want a confirmation of 5 to 1", out.Send)
	}
	if out := receive(t, d, Message{From: 5, Kind: Pong, Heartbeat: d.heartbeat}); len(out.Send) != 0 {
		t.Errorf("after the member's second answer, the detector sent %+v", out.Send)
	}
	ask.About = 0
	if got, want := kinds(receive(t, d, ask)), []Kind{Pong}; !slices.Equal(got, want) {
		t.Errorf("asked about itself, the detector sent %v, want %v", got, want)
	}
	d.gone(5)
	ask.About = 5
	if got, want := kinds(receive(t, d, ask)), []Kind{Pong, Accuse}; !slices.Equal(got, want) {
		t.Errorf("asked about a failed member, the detector sent %v, want %v", got, want)
	}
}

func TestV3IndirectConfirmationClearsASuspect(t *testing.T) {
	d := settled(t)
	d.Report(5)
	vouch := Message{From: 1, Kind: Confirm, Heartbeat: d.heartbeat, About: 5}
	if receive(t, d, vouch); d.State(5) != Suspect {
		t.Error("an unrequested confirmation cleared the suspect")
	}
	if got := kinds(tickOn(d, 1)); !slices.Contains(got, Ask) {
		t.Errorf("the detector sent %v, want indirect probes", got)
	}
	if receive(t, d, vouch); d.State(5) != Live {
		t.Errorf("the confirmed member is %v, want live", d.State(5))
	}
}

// TestO4ProbeAndAccusationStateIsBounded sends all possible questions and accusations.
func TestO4ProbeAndAccusationStateIsBounded(t *testing.T) {
	const n = 100
	d := newDetector(t, n, 0)
	for from := 1; from < n; from++ {
		for about := 1; about < n; about++ {
			if about == from {
				continue
			}
			receive(t, d, Message{From: from, Kind: Ask, About: about})
			for tree := Forward; tree <= Backward; tree++ {
				receive(t, d, Message{From: from, Kind: Accuse, About: about, Tree: tree, Reach: n - 1})
			}
		}
	}
	if len(d.probeRequests) > maxProbeRequests || len(d.accusations) > 2*n || len(d.suspicions) > n {
		t.Errorf("%d probe requests, %d accusations, %d suspicions", len(d.probeRequests), len(d.accusations), len(d.suspicions))
	}
}

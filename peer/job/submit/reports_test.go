package submit

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

func TestDecide(t *testing.T) {
	a, b := view.Change{Process: proc(0, 0), To: view.Failed}, view.Change{Process: proc(0, 1), To: view.Failed}
	says := func(changes ...view.Change) (all []changeReport) {
		for _, c := range changes {
			all = append(all, changeReport{change: c, silent: c == view.Change{}})
		}
		return all
	}
	var silent view.Change
	for name, tt := range map[string]struct {
		voices   []changeReport
		ok       bool // the decision is a
		disputed bool
	}{
		"no reports":              {},
		"one":                     {says(a), true, false},
		"one, which is silent":    {says(silent), false, false},
		"one of two":              {says(a, silent), false, false},
		"two of two":              {says(a, a), true, false},
		"two of three":            {says(a, silent, a), true, false},
		"two of three, one lies":  {says(b, a, a), true, false},
		"two of four":             {says(a, silent, a, silent), false, false},
		"one against one":         {says(a, b), false, true},
		"two against two":         {says(a, b, b, a), false, true},
		"two against two so far":  {says(a, b, b, a, silent), false, false},
		"one against the silent":  {says(b, silent, silent), false, false},
		"all three say otherwise": {says(a, b, view.Change{Process: proc(0, 2), To: view.Failed}), false, true},
	} {
		c, ok, err := decide(tt.voices)
		if ok != tt.ok || ok && c != a || errors.Is(err, errDisputed) != tt.disputed {
			t.Errorf("%s: %v %v %v", name, c, ok, err)
		}
	}
}

// TestPeerReportsHaveNoGaps: so the reports of a peer are bounded, and each reported change belongs to one view.
func TestPeerReportsHaveNoGaps(t *testing.T) {
	next := func(epoch uint64) *jobpb.Change { return agreedOn(epoch, proc(0, 0), view.Failed).GetAgreed() }
	for _, bad := range []*jobpb.Change{next(0), next(1), next(2), next(4), next(1 << 63), {Epoch: 3, To: 200}, {}} {
		tt := peerReports{}
		if err := tt.add(next(2)); err != nil {
			t.Fatal(err)
		}
		if err := tt.add(bad); err == nil {
			t.Errorf("after view 2 comes %v", bad)
		}
	}
	full := peerReports{changes: make([]view.Change, maxChanges)}
	if err := full.add(next(maxChanges + 2)); err == nil {
		t.Errorf("more than %d reports were accepted", maxChanges)
	}
}

// TestHostilePeerDoesNotDeceiveAResumedJob: one of three peers reports first, and reports
// changes that were never agreed on.
func TestHostilePeerDoesNotDeceiveAResumedJob(t *testing.T) {
	b := newBed(t, never, 1, 1, 1)
	believed := make(chan struct{})
	honest := func(k int) func(*part) {
		return func(p *part) {
			p.back()
			<-believed
			p.say(agreedOn(2, proc(0, 1), view.Finished))
			p.ends(proc(0, k), "a\n", "b\n")
		}
	}
	o := b.attach(b.keptOn(3), map[view.Process]func(*part){
		proc(0, 0): func(p *part) {
			p.back(agreedOn(2, proc(0, 1), view.Failed), agreedOn(3, proc(0, 2), view.Failed))
			p.writes(proc(0, 0), 0, "a\n")
			p.acknowledged(1) // so the submitter has read the reports
			close(believed)
		},
		proc(0, 1): honest(1),
		proc(0, 2): honest(2),
	})
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\nb\n")
	if v := o.view(); v.Epoch != 2 || v.State(proc(0, 1)) != view.Finished {
		t.Errorf("last view %+v", v)
	}
}

// TestContradictingPeersEndTheJob: the job ends, since it is unknown which of the two lies.
func TestContradictingPeersEndTheJob(t *testing.T) {
	b := newBed(t, never, 1, 1)
	scripts := make(map[view.Process]func(*part))
	for i := range 2 {
		scripts[proc(0, i)] = func(p *part) { p.back(agreedOn(2, proc(0, 1-i), view.Failed)) }
	}
	o := b.attach(b.keptOn(2), scripts)
	o.want(job.StatusLost, "contradict each other")
	for _, m := range b.peers {
		if !strings.Contains(o.Message, short(m.ID())) {
			t.Errorf("%q does not name peer %s", o.Message, short(m.ID()))
		}
	}
}

// TestReportsOfAHostilePeerThatFailedAreIgnored: its reports of later changes do not count.
func TestReportsOfAHostilePeerThatFailedAreIgnored(t *testing.T) {
	b := newBed(t, never, 1, 1)
	lied := make(chan struct{})
	o := b.attach(b.keptOn(2), map[view.Process]func(*part){
		proc(0, 0): func(p *part) {
			p.back(agreedOn(2, proc(0, 0), view.Failed), agreedOn(3, proc(0, 1), view.Failed))
			p.writes(proc(0, 0), 0, "a\n")
			p.acknowledged(1) // so the submitter has read the reports
			close(lied)
		},
		proc(0, 1): func(p *part) {
			p.back()
			<-lied
			p.say(agreedOn(2, proc(0, 0), view.Failed))
			p.ends(proc(0, 1), "a\n", "b\n")
			p.say(agreedOn(3, proc(0, 1), view.Finished))
		},
	})
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\nb\n")
}

// TestReportsOfARemovedPeerCount: such a peer has a voice on the changes that it
// reports.
func TestReportsOfARemovedPeerCount(t *testing.T) {
	e := newHearing(t)
	e.resume()
	v := e.state.View()
	for i, l := range e.peers.links {
		if i%2 == 0 {
			if err := l.reported.changes.add(agreedOn(2, proc(0, 1), view.Failed).GetAgreed()); err != nil {
				t.Fatal(err)
			}
		}
		l.reported.changes.outside = i < 2
	}
	var got []bool // silent
	for _, voice := range e.resumption.nextChanges(v) {
		got = append(got, voice.silent)
	}
	if want := []bool{false, false, true}; !slices.Equal(got, want) {
		t.Errorf("silent are %v, want %v", got, want)
	}
}

// TestImpossibleReportsAreIgnored: the reports of such a peer do not count any more.
func TestImpossibleReportsAreIgnored(t *testing.T) {
	b := newBed(t, never, 1, 1)
	o := b.attach(b.keptOn(2), map[view.Process]func(*part){
		proc(0, 0): func(p *part) { p.back(agreedOn(2, proc(0, 7), view.Live)) },
		proc(0, 1): func(p *part) {
			p.back()
			p.asked(proc(0, 0), view.Failed)
			p.say(agreedOn(2, proc(0, 0), view.Failed))
			p.ends(proc(0, 1), "a\n")
			p.say(agreedOn(3, proc(0, 1), view.Finished))
		},
	})
	o.want(job.StatusOK, "")
	o.told("it violated the protocol")
	o.wrote(0, job.Stdout, "a\n")
}

// TestRemovedPeerIsNotWaitedFor: such a peer reports no further changes.
func TestRemovedPeerIsNotWaitedFor(t *testing.T) {
	b := newBed(t, never, 1, 1)
	o := b.attach(b.keptOn(2), map[view.Process]func(*part){
		proc(0, 0): func(p *part) {
			p.back(exitedMessage(proc(0, 0), wellEnded), agreedOn(2, proc(0, 0), view.Finished),
				&jobpb.FromPeer{Body: &jobpb.FromPeer_Outside{Outside: &jobpb.Outside{}}})
		},
		proc(0, 1): func(p *part) {
			p.back(agreedOn(2, proc(0, 0), view.Finished))
			p.exits(proc(0, 1), wellEnded)
			p.asked(proc(0, 1), view.Finished)
			p.say(agreedOn(3, proc(0, 1), view.Finished))
			p.say(agreedOn(4, proc(0, 0), view.Failed)) // its peer has no output of it
			p.writes(proc(0, 1), 0, "a\n")
			p.closes(proc(0, 1), 1)
		},
	})
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\n")
}

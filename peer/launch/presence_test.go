package launch

import (
	"testing"
	"time"
)

// TestSubmitterStates follows the transitions between the states of a submitter.
func TestSubmitterStates(t *testing.T) {
	now := time.Unix(1000, 0)
	lose := func(p *presence) { p.lose(now) }
	cut := func(p *presence) { p.enter(disconnected, now) }
	back := func(p *presence) { p.reconnected(false, now) }
	failedBack := func(p *presence) { p.reconnected(true, now) }
	join := func(p *presence) { p.joined(now) }
	for name, tt := range map[string]struct {
		steps []func(*presence)
		want  submitterState
	}{
		"the stream breaks":                   {[]func(*presence){cut}, disconnected},
		"the submitter reconnects":            {[]func(*presence){cut, back}, connected},
		"the submitter is given up":           {[]func(*presence){cut, lose}, unreachable},
		"the submitter reconnects after that": {[]func(*presence){cut, lose, back}, connected},
		"the detector still finds it failed":  {[]func(*presence){lose, failedBack}, unreachable},
		"the submitter joins then":            {[]func(*presence){lose, failedBack, join}, connected},
	} {
		var p presence
		for _, step := range tt.steps {
			step(&p)
		}
		if p.state != tt.want {
			t.Errorf("%s: state %v, want %v", name, p.state, tt.want)
		}
	}
}

// TestSilentSubmitterIsWaitedFor checks the times after which the peers act for a silent submitter, and after
// which they give it up.
func TestSilentSubmitterIsWaitedFor(t *testing.T) {
	now := time.Unix(1000, 0)
	p := presence{away: time.Minute}
	p.lose(now)
	for after, want := range map[time.Duration]struct{ acts, expired, short bool }{
		actAfter - 1:                 {false, false, false},
		actAfter:                     {true, false, false},
		minAbsence + 1:               {true, false, true},
		minAbsence + time.Minute:     {true, false, true},
		minAbsence + time.Minute + 1: {true, true, true},
	} {
		at := now.Add(after)
		if acts, expired, short := p.acts(at), p.expired(false, at), p.expired(true, at); acts != want.acts || expired != want.expired || short != want.short {
			t.Errorf("after %v: acts %v, expired %v, expired before its begin %v; want %+v", after, acts, expired, short, want)
		}
	}
	if p.until = now.Add(time.Second); !p.expired(false, now.Add(2*time.Second)) {
		t.Error("the job continues after its deadline")
	}
}

// TestReconnectedSubmitterIsWaitedForAgain checks that a silent submitter that has reconnected gets the whole
// time again, unless only it can let the job begin.
func TestReconnectedSubmitterIsWaitedForAgain(t *testing.T) {
	now := time.Unix(1000, 0)
	p := presence{away: time.Minute}
	p.lose(now)
	p.lastMessageAt = now.Add(time.Minute)
	at := now.Add(minAbsence + time.Minute + 1)
	if p.expired(false, at) {
		t.Error("it is given up, although it has reconnected")
	}
	if !p.expired(true, at) {
		t.Error("a job that has not begun is kept")
	}
	if !p.expired(false, at.Add(time.Minute)) {
		t.Error("it is waited for without end")
	}
}

package reservation

import (
	"errors"
	"strings"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

const (
	alice = p2ppeer.ID("alice")
	bob   = p2ppeer.ID("bob")
)

// start is the start time of all tables.
var start = time.Date(2011, 6, 1, 12, 0, 0, 0, time.UTC)

// keyOf returns a key for tables.
func keyOf(b byte) Key { return Key{b} }

func mustHold(t *testing.T, l *Ledger, job string, slots int, key Key, now time.Time) Grant {
	t.Helper()
	g, err := l.Hold(Request{Job: job, Submitter: alice, Slots: slots}, key, now)
	if err != nil {
		t.Fatalf("hold %d slots for %s: %v", slots, job, err)
	}
	return g
}

func mustConfirm(t *testing.T, l *Ledger, key Key, slots int, now time.Time) {
	t.Helper()
	if err := l.Confirm(key, alice, slots, now); err != nil {
		t.Fatalf("confirm %d slots: %v", slots, err)
	}
}

// judging returns a policy with the same verdict for all requests.
func judging(v Verdict) func(Request, time.Time) Verdict {
	return func(Request, time.Time) Verdict { return v }
}

func TestS3OwnersLimitsTakePrecedence(t *testing.T) {
	long := strings.Repeat("x", maxJobName+1)
	tests := []struct {
		name    string
		limits  Limits
		earlier []Request
		drain   bool
		request Request
		slots   int
		err     error
	}{
		{"all free", Limits{Slots: 4}, nil, false, Request{Job: "j", Submitter: alice, Slots: 3}, 3, nil},
		{"fewer than wanted", Limits{Slots: 4}, []Request{{Job: "i", Submitter: bob, Slots: 3}}, false, Request{Job: "j", Submitter: alice, Slots: 3}, 1, nil},
		{"none free", Limits{Slots: 4}, []Request{{Job: "i", Submitter: bob, Slots: 4}}, false, Request{Job: "j", Submitter: alice, Slots: 1}, 0, Busy},
		{"no slots", Limits{}, nil, false, Request{Job: "j", Submitter: alice, Slots: 1}, 0, Busy},
		{"one job too many", Limits{Slots: 4, MaxJobs: 1}, []Request{{Job: "i", Submitter: bob, Slots: 1}}, false, Request{Job: "j", Submitter: alice, Slots: 1}, 0, MaxJobs},
		{"same name of another submitter", Limits{Slots: 4, MaxJobs: 1}, []Request{{Job: "j", Submitter: bob, Slots: 1}}, false, Request{Job: "j", Submitter: alice, Slots: 1}, 0, MaxJobs},
		{"refused by the policy", Limits{Slots: 4, Judge: judging(Verdict{Refused: WasmOnly})}, nil, false, Request{Job: "j", Submitter: alice, Slots: 1}, 0, WasmOnly},
		{"refused although slots are free", Limits{Slots: 4, Judge: judging(Verdict{Refused: Denied, Slots: 4})}, nil, false, Request{Job: "j", Submitter: alice, Slots: 1}, 0, Denied},
		{"fewer for the class than free slots", Limits{Slots: 4, Judge: judging(Verdict{Class: "all", Slots: 2})}, nil, false, Request{Job: "j", Submitter: alice, Slots: 3}, 2, nil},
		{"the class has some already", Limits{Slots: 4, Judge: judging(Verdict{Class: "all", Slots: 3})}, []Request{{Job: "i", Submitter: bob, Slots: 2}}, false, Request{Job: "j", Submitter: alice, Slots: 3}, 1, nil},
		{"the class has all its slots", Limits{Slots: 4, Judge: judging(Verdict{Class: "all", Slots: 2})}, []Request{{Job: "i", Submitter: bob, Slots: 2}}, false, Request{Job: "j", Submitter: alice, Slots: 1}, 0, Busy},
		{"many kinds", Limits{Slots: 4}, nil, false, Request{Job: "j", Submitter: alice, Slots: 1, Kinds: make([]string, maxKinds+1)}, 0, Malformed},
		{"draining", Limits{Slots: 4}, nil, true, Request{Job: "j", Submitter: alice, Slots: 1}, 0, Draining},
		{"no slots wanted", Limits{Slots: 4}, nil, false, Request{Job: "j", Submitter: alice, Slots: 0}, 0, Malformed},
		{"negative slots wanted", Limits{Slots: 4}, nil, false, Request{Job: "j", Submitter: alice, Slots: -1}, 0, Malformed},
		{"no job", Limits{Slots: 4}, nil, false, Request{Job: "", Submitter: alice, Slots: 1}, 0, Malformed},
		{"long job", Limits{Slots: 4}, nil, false, Request{Job: long, Submitter: alice, Slots: 1}, 0, Malformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := NewLedger(tt.limits)
			for i, q := range tt.earlier {
				if _, err := l.Hold(q, keyOf(byte(i+1)), start); err != nil {
					t.Fatal(err)
				}
			}
			if tt.drain {
				l.drain()
			}
			g, err := l.Hold(tt.request, keyOf(99), start)
			if g.Slots != tt.slots || !errors.Is(err, tt.err) {
				t.Errorf("got %d slots, %v; want %d, %v", g.Slots, err, tt.slots, tt.err)
			}
		})
	}
}

func TestS2UnconfirmedHoldExpires(t *testing.T) {
	l := NewLedger(Limits{Slots: 4})
	g := mustHold(t, l, "j", 4, keyOf(1), start)
	if want := start.Add(34 * time.Second); !g.Expires.Equal(want) {
		t.Fatalf("the lease expires %v, want %v: 30 s and 1 s per slot", g.Expires, want)
	}
	// Asking again must not extend the lease.
	if again := mustHold(t, l, "j", 4, keyOf(2), start.Add(20*time.Second)); again != g {
		t.Fatalf("the second Hold returned %+v, want %+v", again, g)
	}
	if over := l.Expire(g.Expires.Add(-1)); len(over) != 0 {
		t.Fatalf("%v ended early", over)
	}
	if err := l.Confirm(keyOf(1), alice, 1, g.Expires); !errors.Is(err, UnknownKey) {
		t.Errorf("confirm after the lease: %v, want %v", err, UnknownKey)
	}
	if s := l.Snapshot(); s.Free != 4 || len(s.Jobs) != 0 {
		t.Errorf("after the lease: %+v", s)
	}
}

func TestConfirmKeepsTheGivenSlotsAndFreesTheRest(t *testing.T) {
	l := NewLedger(Limits{Slots: 4})
	g := mustHold(t, l, "j", 4, keyOf(1), start)
	for _, slots := range []int{-1, 0, 5} {
		if err := l.Confirm(g.Key, alice, slots, start); !errors.Is(err, Malformed) {
			t.Errorf("confirm %d of 4: %v, want %v", slots, err, Malformed)
		}
	}
	if err := l.Confirm(g.Key, bob, 3, start); !errors.Is(err, UnknownKey) {
		t.Errorf("Confirm by another submitter: %v, want %v", err, UnknownKey)
	}
	mustConfirm(t, l, g.Key, 3, start)
	mustConfirm(t, l, g.Key, 3, start.Add(time.Second)) // the answer got lost
	if s := l.Snapshot(); s.Confirmed != 3 || s.Free != 1 {
		t.Errorf("%+v, want 3 confirmed and 1 free", s)
	}
	if over := l.Expire(start.Add(ConfirmedLease - 1)); len(over) != 0 {
		t.Error("a confirmed hold ended before its lease")
	}
}

// TestS4ConfirmingAgainDoesNotExtendTheLease: otherwise a submitter that never redeems its key could hold
// the slots indefinitely.
func TestS4ConfirmingAgainDoesNotExtendTheLease(t *testing.T) {
	l := NewLedger(Limits{Slots: 2})
	g := mustHold(t, l, "j", 2, keyOf(1), start)
	mustConfirm(t, l, g.Key, 2, start)
	for after := time.Second; after < ConfirmedLease; after += time.Second {
		mustConfirm(t, l, g.Key, 2, start.Add(after))
	}
	end := start.Add(ConfirmedLease)
	if at, ok := l.nextExpiry(); !ok || !at.Equal(end) {
		t.Errorf("the next expiry is %v %v", at, ok)
	}
	if over := l.Expire(end); len(over) != 1 || over[0] != g.Key {
		t.Errorf("the ended holds are %v, want %v", over, g.Key)
	}
	if err := l.Confirm(g.Key, alice, 2, end); !errors.Is(err, UnknownKey) {
		t.Errorf("confirmed after the lease: %v, want %v", err, UnknownKey)
	}
}

func TestKeyIsRedeemedOnce(t *testing.T) {
	tests := []struct {
		name      string
		key       Key
		job       string
		submitter p2ppeer.ID
		at        time.Duration
		err       error
	}{
		{"unknown key", keyOf(9), "j", alice, 0, UnknownKey},
		{"unconfirmed", keyOf(2), "k", alice, 0, UnknownKey},
		{"other job", keyOf(1), "k", alice, 0, UnknownKey},
		{"other submitter", keyOf(1), "j", bob, 0, UnknownKey},
		{"first", keyOf(1), "j", alice, time.Second, nil},
		{"second", keyOf(1), "j", alice, 2 * time.Second, UnknownKey},
	}
	l := NewLedger(Limits{Slots: 3})
	mustHold(t, l, "j", 2, keyOf(1), start)
	mustHold(t, l, "k", 1, keyOf(2), start)
	mustConfirm(t, l, keyOf(1), 2, start)
	for _, tt := range tests {
		slots, err := l.Redeem(tt.key, tt.job, tt.submitter, start.Add(tt.at))
		if !errors.Is(err, tt.err) || (err == nil) != (slots == 2) {
			t.Errorf("%s: got %d, %v; want %v", tt.name, slots, err, tt.err)
		}
	}
}

func TestS1OnlyThePeerFreesRunningSlots(t *testing.T) {
	l := NewLedger(Limits{Slots: 2, MaxJobs: 1})
	g := mustHold(t, l, "j", 1, keyOf(1), start)
	mustConfirm(t, l, g.Key, 1, start)
	if _, err := l.Redeem(g.Key, "j", alice, start); err != nil {
		t.Fatal(err)
	}
	later := start.Add(24 * time.Hour)
	l.Withdraw("j", alice, false)
	if over := l.Expire(later); len(over) != 0 || l.Snapshot().Running != 1 {
		t.Fatalf("running slots were freed: %+v", l.Snapshot())
	}
	if _, ok := l.nextExpiry(); ok {
		t.Error("a running job has an expiry")
	}
	// A running job may hold more, under another key.
	if more := mustHold(t, l, "j", 2, keyOf(2), later); more.Key != keyOf(2) || more.Slots != 1 {
		t.Errorf("further hold: %+v", more)
	}
	l.Release(g.Key)
	l.Release(g.Key)
	if s := l.Snapshot(); s.Running != 0 || s.Free != 1 {
		t.Errorf("after release: %+v", s)
	}
}

func TestRepeatedRequestKeepsTheHold(t *testing.T) {
	tests := []struct {
		name  string
		taken int // slots of another job
		again int
		want  int
	}{
		{"the same number", 0, 2, 2},
		{"fewer", 0, 1, 2},
		{"more", 0, 4, 4},
		{"more than are free", 1, 4, 3},
		{"more when no slot is free", 2, 4, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := NewLedger(Limits{Slots: 4, MaxJobs: 2})
			first := mustHold(t, l, "j", 2, keyOf(1), start)
			if tt.taken > 0 {
				mustHold(t, l, "other", tt.taken, keyOf(3), start)
			}
			again := mustHold(t, l, "j", tt.again, keyOf(2), start.Add(time.Second))
			if again.Key != first.Key || again.Slots != tt.want || !again.Expires.Equal(first.Expires) {
				t.Errorf("got %+v after %+v, want %d slots", again, first, tt.want)
			}
		})
	}
}

func TestAbandonFreesUnconfirmedSlots(t *testing.T) {
	l := NewLedger(Limits{Slots: 3})
	mustHold(t, l, "held", 1, keyOf(1), start)
	mustHold(t, l, "confirmed", 1, keyOf(2), start)
	mustConfirm(t, l, keyOf(2), 1, start)
	for _, k := range []Key{keyOf(1), keyOf(1), keyOf(2), keyOf(3)} {
		l.Abandon(k)
	}
	if got := l.Snapshot(); got.Held != 0 || got.Confirmed != 1 || got.Free != 2 {
		t.Errorf("the snapshot is %+v", got)
	}
}

func TestWithdrawFreesOwnHoldsOnly(t *testing.T) {
	l := NewLedger(Limits{Slots: 2})
	mustHold(t, l, "j", 1, keyOf(1), start)
	l.Withdraw("j", bob, false)
	l.Withdraw("k", alice, false)
	if got := l.Snapshot().Held; got != 1 {
		t.Fatalf("%d held, want 1", got)
	}
	l.Withdraw("j", alice, false)
	l.Withdraw("j", alice, false)
	if got := l.Snapshot().Free; got != 2 {
		t.Errorf("%d free, want 2", got)
	}
}

func TestDrainLetsConfirmedJobsStart(t *testing.T) {
	l := NewLedger(Limits{Slots: 3})
	mustHold(t, l, "held", 1, keyOf(1), start)
	mustHold(t, l, "confirmed", 1, keyOf(2), start)
	mustConfirm(t, l, keyOf(2), 1, start)
	l.drain()
	if err := l.Confirm(keyOf(1), alice, 1, start); !errors.Is(err, Draining) {
		t.Errorf("first confirm while draining: %v, want %v", err, Draining)
	}
	mustConfirm(t, l, keyOf(2), 1, start) // again, as after a lost answer
	if _, err := l.Redeem(keyOf(2), "confirmed", alice, start); err != nil {
		t.Errorf("redeem while draining: %v", err)
	}
}

func TestSnapshotCountsEverySlotOnce(t *testing.T) {
	l := NewLedger(Limits{Slots: 9})
	for i, job := range []string{"running", "confirmed", "held"} {
		mustHold(t, l, job, i+1, keyOf(byte(i+1)), start)
	}
	mustConfirm(t, l, keyOf(1), 1, start)
	mustConfirm(t, l, keyOf(2), 2, start)
	if _, err := l.Redeem(keyOf(1), "running", alice, start); err != nil {
		t.Fatal(err)
	}
	s := l.Snapshot()
	if s.Total != 9 || s.Free != 3 || s.Running != 1 || s.Confirmed != 2 || s.Held != 3 {
		t.Errorf("the snapshot is %+v", s)
	}
	for i, j := range s.Jobs {
		if j.Job != j.State.String() || j.Slots != i+1 || j.Expires.IsZero() != (j.State == Running) {
			t.Errorf("job %d: %+v", i, j)
		}
	}
}

func TestS3ReducedSlotsAreNotGranted(t *testing.T) {
	l := NewLedger(Limits{Slots: 4})
	mustConfirm(t, l, mustHold(t, l, "i", 3, keyOf(1), start).Key, 3, start)
	l.Resize(2)
	if _, err := l.Hold(Request{Job: "j", Submitter: bob, Slots: 1}, keyOf(2), start); !errors.Is(err, Busy) {
		t.Errorf("Hold with three slots in use after Resize(2): %v, want Busy", err)
	}
	if s := l.Snapshot(); s.Total != 2 || s.Free != 0 || s.Confirmed != 3 {
		t.Errorf("the snapshot is %+v", s)
	}
	l.Release(keyOf(1))
	if g := mustHold(t, l, "k", 4, keyOf(3), start); g.Slots != 2 {
		t.Errorf("%d slots of two", g.Slots)
	}
	l.Resize(5)
	if s := l.Snapshot(); s.Free != 3 {
		t.Errorf("the snapshot is %+v", s)
	}
}

// TestS3BarredJobGetsNoSlots: slots that a barred job holds and has not used become free for others. Running
// processes continue until the peer has ended them. Another submitter's job with the same ID is a
// different job.
func TestS3BarredJobGetsNoSlots(t *testing.T) {
	l := NewLedger(Limits{Slots: 4})
	mustHold(t, l, "unwanted", 1, keyOf(1), start)
	mustConfirm(t, l, keyOf(1), 1, start)
	if _, err := l.Redeem(keyOf(1), "unwanted", alice, start); err != nil {
		t.Fatal(err)
	}
	mustHold(t, l, "unwanted", 1, keyOf(2), start)
	mustConfirm(t, l, keyOf(2), 1, start)
	if _, err := l.Hold(Request{Job: "unwanted", Submitter: bob, Slots: 2}, keyOf(3), start); err != nil {
		t.Fatal(err)
	}
	for _, who := range []p2ppeer.ID{alice, "carol"} {
		if _, err := l.Hold(Request{Job: "unwanted", Submitter: who, Slots: 4, Waits: true}, keyOf(4), start); err == nil && who != alice {
			t.Fatal("a job that must wait got slots")
		}
	}
	mustBe := func(running, held, waiting int) {
		t.Helper()
		if s := l.Snapshot(); s.Running != running || s.Held != held || s.Waiting != waiting || s.Confirmed != 0 {
			t.Errorf("got %+v; want %d running, %d held and %d waiting", s, running, held, waiting)
		}
	}
	unwanted := Name{Job: "unwanted", Submitter: alice}
	l.bar(unwanted)
	l.bar(unwanted)
	mustBe(1, 2, 1)
	if _, err := l.Redeem(keyOf(2), "unwanted", alice, start); err == nil {
		t.Error("the key of a barred job was redeemed")
	}
	if _, err := l.Hold(Request{Job: "unwanted", Submitter: alice, Slots: 1, Waits: true}, keyOf(5), start); !errors.Is(err, Denied) {
		t.Errorf("got %v, want Denied", err)
	}
	if err := l.Confirm(keyOf(3), bob, 2, start); err != nil {
		t.Errorf("job of another submitter with the same ID: %v", err)
	}
	l.bar(Name{Job: "unwanted", Submitter: "carol"})
	mustHold(t, l, "another", 1, keyOf(6), start)
	l.Release(keyOf(1))
	for n := range 2 * maxBarred {
		l.bar(Name{Job: strings.Repeat("x", n)})
	}
	if n := len(l.barred); n != maxBarred {
		t.Errorf("%d jobs are remembered", n)
	}
}

package sim

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
	"github.com/p2pmpi/p2pmpi/reservation"
)

var start = time.Date(2011, 6, 1, 12, 0, 0, 0, time.UTC)

// at returns an operation of alice's job "j" with key 1 at peer p, seconds after start.
func at(seconds int, kind Kind, slots, free int) Operation {
	op := Operation{At: start.Add(time.Duration(seconds) * time.Second), Kind: kind, Peer: "p",
		Submitter: "alice", Job: "j", Key: reservation.Key{1}, Slots: slots, Free: free}
	if kind == Granted {
		op.Expires = op.At.Add(reservation.HoldBase + time.Duration(slots)*reservation.HoldPerSlot)
	}
	return op
}

// of returns op as executed by another submitter with another key.
func of(submitter p2ppeer.ID, op Operation) Operation {
	op.Submitter, op.Key = submitter, reservation.Key{byte(len(submitter))}
	return op
}

// notMallory is a policy that denies one submitter.
func notMallory(q reservation.Request, _ time.Time) (v reservation.Verdict) {
	if q.Submitter == "mallory" {
		v.Refused = reservation.Denied
	}
	return v
}

func TestHistories(t *testing.T) {
	lasting := func(op Operation, d time.Duration) Operation { op.Expires = op.At.Add(d); return op }
	under := func(key byte, op Operation) Operation { op.Key = reservation.Key{key}; return op }
	limits := reservation.Limits{Slots: 4, MaxJobs: 2, Judge: notMallory}
	for _, tt := range []struct {
		name string
		want string // first broken promise, or ""
		ops  []Operation
	}{
		{"a job's life", "", []Operation{at(0, Granted, 3, 1), at(1, Confirmed, 2, 2), at(5, Redeemed, 2, 2), at(500, Released, 0, 4)}},
		{"a hold that ends with its lease", "", []Operation{at(0, Granted, 3, 1), at(33, Observed, 0, 4)}},
		{"a hold that grows", "", []Operation{at(0, Granted, 1, 3), lasting(at(2, Granted, 3, 1), 29*time.Second), at(3, Withdrawn, 0, 4)}},
		{"two jobs after each other", "", []Operation{at(0, Granted, 4, 0), at(1, Abandoned, 0, 4), of("bob", at(2, Granted, 4, 0))}},
		{"a slot granted twice", "S1", []Operation{at(0, Granted, 3, 1), of("bob", at(1, Granted, 2, 0))}},
		{"a running job's slot", "S1", []Operation{at(0, Granted, 4, 0), at(1, Confirmed, 4, 0), at(2, Redeemed, 4, 0), of("bob", at(900, Granted, 1, 0))}},
		{"more free slots than exist", "S1", []Operation{at(0, Granted, 3, 2)}},
		{"a key redeemed twice", "S1", []Operation{at(0, Granted, 1, 3), at(1, Confirmed, 1, 3), at(2, Redeemed, 1, 3), at(3, Redeemed, 1, 3)}},
		{"a hold redeemed", "S1", []Operation{at(0, Granted, 1, 3), at(2, Redeemed, 1, 3)}},
		{"another submitter's key", "S1", []Operation{at(0, Granted, 1, 3), under(1, of("bob", at(1, Confirmed, 1, 3)))}},
		{"an unknown key", "S1", []Operation{at(0, Confirmed, 1, 4)}},
		{"a key handed out twice", "S1", []Operation{at(0, Granted, 1, 3), under(1, of("bob", at(1, Granted, 1, 3)))}},
		{"more confirmed than held", "S1", []Operation{at(0, Granted, 1, 3), at(1, Confirmed, 2, 2)}},
		{"confirmed too late", "S2", []Operation{at(0, Granted, 1, 3), at(31, Confirmed, 1, 3)}},
		{"redeemed too late", "S2", []Operation{at(0, Granted, 1, 3), at(1, Confirmed, 1, 3), at(61, Redeemed, 1, 3)}},
		{"held for an hour", "S2", []Operation{lasting(at(0, Granted, 1, 3), time.Hour)}},
		{"prolonged by asking again", "S2", []Operation{at(0, Granted, 1, 3), at(20, Granted, 1, 3)}},
		{"a submitter that is not admitted", "S3", []Operation{of("mallory", at(0, Granted, 1, 3))}},
		{"too many jobs", "S3", []Operation{at(0, Granted, 1, 3), of("bob", at(0, Granted, 1, 2)), of("ludwig", at(0, Granted, 1, 1))}},
		{"kept after its lease", "S4", []Operation{at(0, Granted, 3, 1), at(33, Observed, 0, 1)}},
		{"kept after its job", "S4", []Operation{at(0, Granted, 1, 3), at(1, Confirmed, 1, 3), at(2, Redeemed, 1, 3), at(3, Released, 0, 3)}},
		{"kept after a release", "S4", []Operation{at(0, Granted, 1, 3), at(1, Withdrawn, 0, 3)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := History{Limits: map[p2ppeer.ID]reservation.Limits{"p": limits}, Operations: tt.ops}
			got := ""
			broken := h.Check()
			if len(broken) > 0 {
				got = broken[0].Promise
			}
			if got != tt.want {
				t.Errorf("got %q, want %q: %v", got, tt.want, broken)
			}
		})
	}
}

// A mutant is a ledger with one fault.
type mutant struct {
	*reservation.Ledger
	slow        time.Duration // delay of the end of a lease
	keeps       bool          // keeps the slots that a submitter releases
	leaks       bool          // keeps the slots of ended processes
	twice       bool          // redeems a key twice
	redeemed    map[reservation.Key]int
	everlasting bool // grants for an hour
}

func (m *mutant) Hold(q reservation.Request, key reservation.Key, now time.Time) (reservation.Grant, error) {
	g, err := m.Ledger.Hold(q, key, now)
	if m.everlasting {
		g.Expires = g.Expires.Add(time.Hour)
	}
	return g, err
}

func (m *mutant) Confirm(key reservation.Key, submitter p2ppeer.ID, slots int, now time.Time) error {
	return m.Ledger.Confirm(key, submitter, slots, now.Add(-m.slow))
}

func (m *mutant) Redeem(key reservation.Key, job string, submitter p2ppeer.ID, now time.Time) (int, error) {
	slots, err := m.Ledger.Redeem(key, job, submitter, now.Add(-m.slow))
	if m.twice && err != nil && m.redeemed[key] > 0 {
		return m.redeemed[key], nil
	}
	if err == nil {
		m.redeemed[key] = slots
	}
	return slots, err
}

func (m *mutant) Expire(now time.Time) []reservation.Key { return m.Ledger.Expire(now.Add(-m.slow)) }

func (m *mutant) Withdraw(job string, submitter p2ppeer.ID, waits bool) {
	if !m.keeps {
		m.Ledger.Withdraw(job, submitter, waits)
	}
}

func (m *mutant) Release(key reservation.Key) {
	if !m.leaks {
		m.Ledger.Release(key)
	}
}

// TestBrokenLedgers runs a few jobs, one of a denied submitter, one whose lease expires, and one that
// starts twice, at a peer that breaks a promise.
func TestBrokenLedgers(t *testing.T) {
	limits := reservation.Limits{Slots: 2, MaxJobs: 1, Judge: notMallory}
	ledger := func(change func(*reservation.Limits)) *mutant {
		l := limits
		change(&l)
		return &mutant{Ledger: reservation.NewLedger(l), redeemed: map[reservation.Key]int{}}
	}
	same := func(*reservation.Limits) {}
	for _, tt := range []struct {
		name, want string
		ledger     *mutant
		wrong      func(*mutant)
	}{
		{"nothing", "", ledger(same), func(*mutant) {}},
		{"one slot more", "S1", ledger(func(l *reservation.Limits) { l.Slots++ }), func(*mutant) {}},
		{"redeems twice", "S1", ledger(same), func(m *mutant) { m.twice = true }},
		{"late ends of leases", "S2", ledger(same), func(m *mutant) { m.slow = time.Minute }},
		{"long leases", "S2", ledger(same), func(m *mutant) { m.everlasting = true }},
		{"admits every submitter", "S3", ledger(func(l *reservation.Limits) { l.Judge = nil }), func(*mutant) {}},
		{"takes every job", "S3", ledger(func(l *reservation.Limits) { l.MaxJobs = 0 }), func(*mutant) {}},
		{"keeps released slots", "S4", ledger(same), func(m *mutant) { m.keeps = true }},
		{"leaks slots of jobs that ran", "S4", ledger(same), func(m *mutant) { m.leaks = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				tt.wrong(tt.ledger)
				w := newWorld(20*time.Millisecond, &Peer{ID: "p", Limits: limits, Ledger: tt.ledger})
				exercise(t.Context(), w)
				w.Observe()
				broken := w.History().Check()
				found := slices.ContainsFunc(broken, func(v Violation) bool { return v.Promise == tt.want })
				if tt.want == "" && len(broken) > 0 || tt.want != "" && !found {
					t.Errorf("want a violation of %q, got %v", tt.want, broken)
				}
			})
		})
	}
}

// exercise executes every operation that a promise concerns, and ignores refusals.
func exercise(ctx context.Context, w *World) {
	alice, bob, mallory := w.Submitter(ctx, "alice"), w.Submitter(ctx, "bob"), w.Submitter(ctx, "mallory")
	_, _ = mallory.Hold(ctx, "p", reservation.Request{Job: "m", Slots: 1})
	_, _ = bob.Hold(ctx, "p", reservation.Request{Job: "b", Slots: 1})
	_ = bob.Release(ctx, "p", "b", false)
	a, _ := alice.Hold(ctx, "p", reservation.Request{Job: "a", Slots: 1})
	_ = alice.Confirm(ctx, "p", a.Key, 1)
	_ = alice.Start(ctx, "p", "a", a.Key)
	_ = alice.Start(ctx, "p", "a", a.Key)
	w.Gone("p", a.Key)
	b, _ := bob.Hold(ctx, "p", reservation.Request{Job: "late", Slots: 2})
	time.Sleep(reservation.HoldBase + 3*reservation.HoldPerSlot) // virtual time: the lease ends
	_ = bob.Confirm(ctx, "p", b.Key, 2)
	for i := range 3 { // exceeds the slots by more than one
		_, _ = bob.Hold(ctx, "p", reservation.Request{Job: fmt.Sprint("more", i), Slots: 1})
	}
	_, _ = bob.Hold(ctx, "p", reservation.Request{Job: "more0", Slots: 3})
}

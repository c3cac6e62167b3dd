package reservation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// waiting returns a request for slots of a job that waits in the queue, and began to wait the given time
// after start.
func waiting(job string, slots int, began time.Duration) Request {
	return Request{Job: job, Submitter: alice, Slots: slots, Since: start.Add(began), Waits: true}
}

// placeOf returns the place in a refusal.
func placeOf(t *testing.T, err error) Place {
	t.Helper()
	q, ok := errors.AsType[*queued](err)
	if !ok {
		t.Fatalf("got %v, want a place in the queue", err)
	}
	return q.Place
}

func TestFreedSlotIsKeptForTheLongestWaitingJob(t *testing.T) {
	l := NewLedger(Limits{Slots: 2})
	g := mustHold(t, l, "runs", 2, keyOf(1), start)
	now := start.Add(10 * time.Second)
	_, err := l.Hold(waiting("younger", 1, 8*time.Second), keyOf(2), now)
	if p := placeOf(t, err); p != (Place{1, 1}) {
		t.Errorf("alone in the queue, the job has place %+v", p)
	}
	_, err = l.Hold(waiting("older", 2, 5*time.Second), keyOf(3), now)
	if p := placeOf(t, err); p != (Place{1, 2}) {
		t.Errorf("the earliest job has place %+v", p)
	}
	l.Release(g.Key)
	_, err = l.Hold(waiting("younger", 1, 8*time.Second), keyOf(4), now)
	if p := placeOf(t, err); p != (Place{2, 2}) || !errors.Is(err, Busy) {
		t.Errorf("while slots are kept for another job: %v", err)
	}
	if _, err := l.Hold(Request{Job: "passer-by", Submitter: bob, Slots: 1}, keyOf(5), now); !errors.Is(err, Busy) {
		t.Errorf("a job that does not wait: %v", err)
	}
	if _, err := l.Hold(Request{Job: "recruit", Submitter: bob, Slots: 1, Since: start}, keyOf(6), now); err != nil {
		t.Errorf("a job that began before all others: %v", err)
	}
	l.Withdraw("recruit", bob, false)
	got, err := l.Hold(waiting("older", 2, 5*time.Second), keyOf(7), now)
	if err != nil || got.Slots != 2 {
		t.Errorf("the first job in the queue: %+v, %v", got, err)
	}
}

// TestReleaseKeepsThePlaceInTheQueue: slots are kept for a job that did not find enough slots elsewhere,
// until the job leaves, is confirmed, or does not ask again.
func TestReleaseKeepsThePlaceInTheQueue(t *testing.T) {
	younger := waiting("younger", 1, time.Second)
	tests := []struct {
		name string
		do   func(l *Ledger, g Grant)
		wait time.Duration
		kept bool
	}{
		{"continues to wait", func(l *Ledger, _ Grant) { l.Withdraw("older", alice, true) }, 0, true},
		{"leaves", func(l *Ledger, _ Grant) { l.Withdraw("older", alice, false) }, 0, false},
		{"does not ask again", func(l *Ledger, _ Grant) { l.Withdraw("older", alice, true) }, queueLease, false},
		{"is confirmed and over", func(l *Ledger, g Grant) {
			if err := l.Confirm(g.Key, alice, 1, start.Add(2*time.Second)); err != nil {
				t.Error(err)
			}
			l.Withdraw("older", alice, true)
		}, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := NewLedger(Limits{Slots: 1})
			g, err := l.Hold(waiting("older", 1, 0), keyOf(1), start.Add(2*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			tt.do(l, g)
			_, err = l.Hold(younger, keyOf(2), start.Add(2*time.Second+tt.wait))
			if kept := err != nil; kept != tt.kept {
				t.Errorf("Hold for another job: %v", err)
			}
		})
	}
}

func TestQueueRespectsTheJobLimit(t *testing.T) {
	l := NewLedger(Limits{Slots: 4, MaxJobs: 1})
	g := mustHold(t, l, "runs", 1, keyOf(1), start)
	_, err := l.Hold(waiting("older", 1, 0), keyOf(2), start)
	if p := placeOf(t, err); p != (Place{1, 1}) || !errors.Is(err, MaxJobs) {
		t.Errorf("Hold above the limit on jobs returned %v", err)
	}
	l.Release(g.Key)
	if _, err := l.Hold(waiting("younger", 1, time.Second), keyOf(3), start); !errors.Is(err, MaxJobs) {
		t.Errorf("while the only place is kept for another job: %v", err)
	}
	if _, err := l.Hold(waiting("older", 1, 0), keyOf(4), start); err != nil {
		t.Error(err)
	}
}

// TestClaimedWaitingTimeIsBounded: a job's claimed waiting time is accepted up to a bound, and only on
// its first request.
func TestClaimedWaitingTimeIsBounded(t *testing.T) {
	l := NewLedger(Limits{Slots: 1})
	mustHold(t, l, "runs", 1, keyOf(1), start)
	ask := func(job string, began time.Duration, at time.Time) Place {
		_, err := l.Hold(waiting(job, 1, began), keyOf(2), at)
		return placeOf(t, err)
	}
	ask("honest", 0, start)
	later := start.Add(maxSeniority + time.Second)
	l.queue[0].expires = later.Add(time.Second) // the job has asked again meanwhile
	l.holds[0].expires = later.Add(time.Minute)
	if p := ask("liar", -time.Hour, later); p != (Place{2, 2}) {
		t.Errorf("a job that claims an hour has place %+v before one that waited for %v", p, later.Sub(start))
	}
	ask("late", time.Hour, later)
	if p := ask("late", -time.Hour, later); p != (Place{3, 3}) {
		t.Errorf("a job that changes its claim has place %+v", p)
	}
}

func TestQueueIsBounded(t *testing.T) {
	l := NewLedger(Limits{Slots: 1})
	mustHold(t, l, "runs", 1, keyOf(1), start)
	for i := range 2 * maxQueue {
		for k := range 2 * maxQueuedOf {
			_, err := l.Hold(Request{Job: fmt.Sprint(k), Submitter: p2ppeer.ID(fmt.Sprint(i)), Slots: 1, Waits: true}, keyOf(2), start)
			if _, queued := errors.AsType[*queued](err); queued && k >= maxQueuedOf {
				t.Fatalf("job %d of one submitter is in the queue", k)
			}
		}
	}
	if n := l.Snapshot().Waiting; n != maxQueue {
		t.Errorf("%d jobs wait, want %d", n, maxQueue)
	}
}

// TestJobThatIgnoresKeptSlotsLosesItsPlace: a job that could never start must not block a peer.
func TestJobThatIgnoresKeptSlotsLosesItsPlace(t *testing.T) {
	l := NewLedger(Limits{Slots: 1})
	now := start
	for ; now.Sub(start) <= maxTurn+queueLease; now = now.Add(queueLease / 2) {
		if _, err := l.Hold(waiting("hog", 1, 0), keyOf(1), now); err == nil {
			l.Withdraw("hog", alice, true)
		}
		if _, err := l.Hold(waiting("next", 1, time.Second), keyOf(2), now); err == nil {
			break
		}
	}
	if kept := now.Sub(start); kept <= maxTurn-queueLease || kept > maxTurn+queueLease {
		t.Errorf("the slot was kept for %v, want about %v", kept, maxTurn)
	}
}

// TestJobThatHoldsAndReleasesLosesItsPlace: a job that releases its slots just before the lease ends
// and holds them again counts as having had them all the time. It does not come first again under its own
// name, under another name, or as another submitter from the same address.
func TestJobThatHoldsAndReleasesLosesItsPlace(t *testing.T) {
	for _, as := range []Request{
		{Job: "hog", Submitter: alice}, {Job: "hog again", Submitter: alice}, {Job: "hog again", Submitter: "carol"},
	} {
		l := NewLedger(Limits{Slots: 1})
		hog := waiting("hog", 1, 0)
		hog.Origin = "192.0.2.1"
		as.Slots, as.Since, as.Waits, as.Origin = 1, start.Add(-time.Hour), true, hog.Origin
		honest := Request{Job: "honest", Submitter: bob, Slots: 1, Since: start.Add(maxTurn - time.Minute), Waits: true, Origin: "192.0.2.2"}
		now, got := start, false
		for i := 0; !got && now.Sub(start) <= 2*maxTurn; i, now = i+1, now.Add(queueLease/2) {
			if i%4 == 0 { // the lease would end before the next request
				l.Withdraw("hog", alice, true)
			}
			if _, err := l.Hold(hog, keyOf(1), now); err != nil { // the job has lost its turn
				_, _ = l.Hold(as, keyOf(1), now)
			}
			_, err := l.Hold(honest, keyOf(2), now.Add(time.Second))
			got = err == nil
		}
		if kept := now.Sub(start); !got || kept > maxTurn+HoldBase+queueLease {
			t.Errorf("%s of %s: the other job got the slot: %v, after %v; want about %v", as.Job, as.Submitter, got, kept, maxTurn)
		}
	}
}

// TestOneOriginDoesNotFillTheQueue: new identities cost nothing, so one address has a limited number of
// places.
func TestOneOriginDoesNotFillTheQueue(t *testing.T) {
	l := NewLedger(Limits{Slots: 1})
	mustHold(t, l, "runs", 1, keyOf(1), start)
	ask := func(i int, origin string) bool {
		_, err := l.Hold(Request{Job: "j", Submitter: p2ppeer.ID(fmt.Sprint(i)), Slots: 1, Waits: true, Origin: origin}, keyOf(2), start)
		_, queued := errors.AsType[*queued](err)
		return queued
	}
	for i := range maxQueue {
		if queued := ask(i, "192.0.2.1"); queued != (i < maxQueuedFrom) {
			t.Fatalf("job %d of one origin is in the queue: %v", i, queued)
		}
	}
	if !ask(maxQueue, "192.0.2.2") {
		t.Error("a job of another origin was not queued")
	}
	for i := range maxQueue { // jobs of unknown origin
		if l.Snapshot().Waiting < maxQueue && !ask(maxQueue+1+i, "") {
			t.Fatalf("job %d of unknown origin has no room", i)
		}
	}
}

// TestWaitingDoesNotPenalizeTheOrigin: a job for which slots were kept, and which held them only as long as
// attempts take, loses its turn. Other submitters at its address are not affected.
func TestWaitingDoesNotPenalizeTheOrigin(t *testing.T) {
	l := NewLedger(Limits{Slots: 2})
	mustHold(t, l, "runs", 1, keyOf(1), start)
	l.holds[0].state = Running
	large := waiting("large", 2, 0)
	large.Origin = "192.0.2.1"
	now, next := start, Place{}
	for ; next.Place != 1 && now.Sub(start) <= 2*maxTurn; now = now.Add(queueLease / 2) {
		if _, err := l.Hold(large, keyOf(2), now); err == nil {
			l.Withdraw("large", alice, true)
		}
		next = Place{}
		if _, err := l.Hold(waiting("next", 2, time.Second), keyOf(3), now.Add(time.Second)); err == nil {
			next = l.queue.place(alice, "next")
			l.Withdraw("next", alice, true)
		}
	}
	if next.Place != 1 {
		t.Fatalf("the next job has place %+v after %v", next, now.Sub(start))
	}
	if len(l.lapses) != 0 {
		t.Errorf("%d submitters and origins are penalized for a job that only waited", len(l.lapses))
	}
}

// TestLargestSubmitterOfAnOriginIsEvicted: a relay is one origin, and a few submitters behind it must not
// take the places of the others.
func TestLargestSubmitterOfAnOriginIsEvicted(t *testing.T) {
	l := NewLedger(Limits{Slots: 1})
	mustHold(t, l, "runs", 1, keyOf(1), start)
	ask := func(who, job string) bool {
		_, err := l.Hold(Request{Job: job, Submitter: p2ppeer.ID(who), Slots: 1, Waits: true, Origin: "192.0.2.1"}, keyOf(2), start)
		_, queued := errors.AsType[*queued](err)
		return queued
	}
	for i := range maxQueuedFrom {
		ask(fmt.Sprint("hog", i/maxQueuedOf), fmt.Sprint("job", i))
	}
	fair := maxQueuedFrom / (maxQueuedFrom/maxQueuedOf + 1)
	for i := range maxQueuedOf {
		if queued := ask("other", fmt.Sprint("other", i)); queued != (i < fair) {
			t.Errorf("job %d of the latest submitter is in the queue: %v; its share is %d", i, queued, fair)
		}
	}
	of := map[p2ppeer.ID]int{}
	for _, w := range l.queue {
		of[w.submitter]++
	}
	for who, n := range of {
		if n < fair || n > fair+1 {
			t.Errorf("%s has %d places of %d, want %d or one more", who, n, maxQueuedFrom, fair)
		}
	}
}

// TestOrigins: all submitters with one address have the same origin.
func TestOrigins(t *testing.T) {
	for address, want := range map[string]string{
		"/ip4/192.0.2.1/tcp/4001":         "192.0.2.1",
		"/ip4/192.0.2.1/udp/9/quic-v1":    "192.0.2.1",
		"/ip6/2001:db8:1:2ff::7/tcp/4001": "2001:db8:1:200::/56",
		"/ip4/127.0.0.1/tcp/4001":         "",
		"/ip6/fe80::7/tcp/4001":           "",
		"/ip4/169.254.1.7/tcp/4001":       "",
		"/dns4/example.org/tcp/4001":      "",
		"/ip4/192.0.2.9/tcp/4001/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N/p2p-circuit": "192.0.2.9",
	} {
		if got := originOf(ma.StringCast(address)); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
	if got := originOf(nil); got != "" {
		t.Errorf("no address: %q", got)
	}
}

// TestQueueOrderIsTheSameAtAllPeers: two competing jobs have the same order at all peers, whichever asked
// first.
func TestQueueOrderIsTheSameAtAllPeers(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	var jobs []Request
	for i := range 12 {
		jobs = append(jobs, waiting(fmt.Sprint("job", i), 1, time.Duration(rnd.IntN(4))*time.Second))
	}
	var first string
	for peer := range 20 {
		l := NewLedger(Limits{Slots: 1})
		mustHold(t, l, "runs", 1, keyOf(1), start)
		for _, i := range rnd.Perm(len(jobs)) {
			_, _ = l.Hold(jobs[i], keyOf(2), start.Add(time.Duration(rnd.IntN(5000))*time.Millisecond))
		}
		order := ""
		for _, w := range l.queue {
			order += w.job + " "
		}
		if peer == 0 {
			first = order
		}
		if order != first {
			t.Fatalf("seed %d: peer %d has %s, want %s", seed, peer, order, first)
		}
	}
}

// TestLapsedLeaseMovesAJobToTheBack: a job that does not use its slots does not get them again before
// others, under its own name or another.
func TestLapsedLeaseMovesAJobToTheBack(t *testing.T) {
	for _, confirms := range []bool{false, true} {
		for _, again := range []string{"hog", "hog again"} {
			l := NewLedger(Limits{Slots: 1})
			g, err := l.Hold(waiting("hog", 1, 0), keyOf(1), start)
			if err != nil {
				t.Fatal(err)
			}
			end := g.Expires
			if confirms {
				mustConfirm(t, l, g.Key, 1, start)
				end = start.Add(ConfirmedLease)
			}
			for now := start; now.Before(end); now = now.Add(queueLease / 2) {
				_, _ = l.Hold(waiting("hog", 1, 0), keyOf(2), now)
				_, _ = l.Hold(waiting("next", 1, time.Second), keyOf(3), now)
			}
			if _, err := l.Hold(waiting(again, 1, -time.Hour), keyOf(4), end); !errors.Is(err, Busy) {
				t.Errorf("confirmed %v: %s gets %v, want %v, since another job waits", confirms, again, err, Busy)
			}
			if _, err := l.Hold(waiting("next", 1, time.Second), keyOf(5), end); err != nil {
				t.Errorf("confirmed %v, then asked as %s: the waiting job gets %v", confirms, again, err)
			}
		}
	}
}

// TestLapsesExpire: lapses are dropped once they no longer limit any claim.
func TestLapsesExpire(t *testing.T) {
	l := NewLedger(Limits{Slots: 1})
	now := start
	for i := range 100 {
		g, err := l.Hold(Request{Job: "j", Submitter: p2ppeer.ID(fmt.Sprint(i)), Slots: 1}, keyOf(1), now)
		if err != nil {
			t.Fatal(err)
		}
		now = g.Expires
		l.Expire(now)
		if len(l.lapses) < 1 || len(l.lapses) >= 12 {
			t.Fatalf("%d submitters are remembered", len(l.lapses))
		}
	}
	l.Expire(now.Add(maxSeniority))
	if len(l.lapses) > 0 {
		t.Errorf("%d submitters are still remembered", len(l.lapses))
	}
}

// TestKeptSlotsDoNotExceedTheOffer: a job that asks for more slots than the peer has gets all of them and
// waits for no more.
func TestKeptSlotsDoNotExceedTheOffer(t *testing.T) {
	l := NewLedger(Limits{Slots: 2})
	if g, err := l.Hold(waiting("big", 100, 0), keyOf(1), start); err != nil || g.Slots != 2 {
		t.Fatalf("Hold returned %+v, %v, want the two free slots", g, err)
	}
	if lacks := l.lacks(l.queue[0]); lacks != 0 {
		t.Errorf("a job that has all its slots lacks %d", lacks)
	}
}

// strict is the policy of the owner bob, who admits strangers to one slot at a time.
func strict(q Request, _ time.Time) Verdict {
	if q.Submitter == bob {
		return Verdict{Class: "mine"}
	}
	return Verdict{Class: "everyone", Slots: 1}
}

// TestS3KeptSlotsRespectTheClassLimit: only the one slot that the class of strangers may have is kept for
// waiting strangers, however many wait, and for however many slots.
func TestS3KeptSlotsRespectTheClassLimit(t *testing.T) {
	for _, tt := range []struct {
		name    string
		limits  Limits
		waiting []Request
		running int // slots that strangers already have
		mine    int
	}{
		{"one waits for all slots", Limits{Slots: 4}, []Request{waiting("large", 4, 0)}, 0, 3},
		{"many wait", Limits{Slots: 4}, []Request{waiting("a", 1, 0), waiting("b", 1, 0), waiting("c", 4, 0)}, 0, 3},
		{"one job has the slot, others wait", Limits{Slots: 4}, []Request{waiting("a", 4, 0), waiting("b", 4, 0)}, 1, 3},
		{"no more jobs either", Limits{Slots: 4, MaxJobs: 2}, []Request{waiting("a", 1, 0), waiting("b", 1, 0), waiting("c", 1, 0)}, 0, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.limits.Judge = strict
			l := NewLedger(tt.limits)
			for _, q := range tt.waiting { // all ask at the same time
				l.queue.join(q, strict(q, start), start)
			}
			if tt.running > 0 {
				l.holds = append(l.holds, &hold{Request: Request{Job: "runs", Submitter: "carol", Slots: tt.running}, class: "everyone", state: Running})
			}
			later := start.Add(time.Second)
			g, err := l.Hold(Request{Job: "mine", Submitter: bob, Slots: 4, Since: later}, keyOf(1), later)
			if err != nil || g.Slots != tt.mine {
				t.Errorf("the owner gets %d slots, %v; want %d", g.Slots, err, tt.mine)
			}
		})
	}
}

// TestQueueOrderWithinAClass: the slots of a class are kept for the job that began to wait first.
func TestQueueOrderWithinAClass(t *testing.T) {
	l := NewLedger(Limits{Slots: 4, Judge: strict})
	if g, err := l.Hold(waiting("older", 4, 0), keyOf(1), start); err != nil || g.Slots != 1 {
		t.Fatalf("got %+v, %v; want the one slot of the class", g, err)
	}
	l.Withdraw("older", alice, true)
	_, err := l.Hold(waiting("younger", 1, time.Second), keyOf(2), start.Add(time.Second))
	if p := placeOf(t, err); p != (Place{2, 2}) {
		t.Errorf("the younger job has place %+v", p)
	}
	if _, err := l.Hold(waiting("older", 4, 0), keyOf(3), start.Add(2*time.Second)); err != nil {
		t.Errorf("the older job gets %v", err)
	}
	g, err := l.Hold(Request{Job: "mine", Submitter: bob, Slots: 4, Since: start.Add(time.Minute)}, keyOf(4), start.Add(3*time.Second))
	if err != nil || g.Slots != 3 {
		t.Errorf("the owner gets %d slots, %v; want the 3 beyond the class's limit", g.Slots, err)
	}
}

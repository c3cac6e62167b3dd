package reservation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
)

// confirmedSlots returns the number of confirmed slots at the peers.
func (n *memoryNet) confirmedSlots() int {
	sum := 0
	for _, p := range n.peers {
		sum += p.ledger.Snapshot().Confirmed
	}
	return sum
}

func TestReserve(t *testing.T) {
	tests := []struct {
		name    string
		slots   []int
		broken  map[p2ppeer.ID]memoryPeer
		need    Need
		found   int // number in the shortage, or 0 for success
		reasons map[Reason]int
	}{
		{"all answer", []int{2, 2, 2, 2}, nil, Need{Job: "j", N: 2, R: 2}, 0, nil},
		{"one is silent", []int{2, 2, 2, 2}, map[p2ppeer.ID]memoryPeer{"a": {silent: true}}, Need{Job: "j", N: 2, R: 2}, 0, nil},
		{"one is disconnected", []int{2, 2, 2, 2}, map[p2ppeer.ID]memoryPeer{"a": {deaf: true}}, Need{Job: "j", N: 2, R: 2}, 0, nil},
		{"one does not confirm", []int{2, 2, 2}, map[p2ppeer.ID]memoryPeer{"a": {fails: true}}, Need{Job: "j", N: 2, R: 2}, 0, nil},
		{"two do not confirm", []int{2, 2, 2}, map[p2ppeer.ID]memoryPeer{"a": {fails: true}, "b": {fails: true}}, Need{Job: "j", N: 2, R: 2},
			2, map[Reason]int{UnknownKey: 2}},
		{"too few", []int{2, 0, 2}, nil, Need{Job: "j", N: 4, R: 2}, 4, map[Reason]int{Busy: 1}},
		{"too few and one silent", []int{1, 2}, map[p2ppeer.ID]memoryPeer{"b": {silent: true}}, Need{Job: "j", N: 1, R: 2}, 1, map[Reason]int{Silent: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				net := newMemoryNet(1, 20*time.Millisecond, tt.slots...)
				for id, b := range tt.broken {
					p := net.peers[id]
					p.silent, p.deaf, p.fails = b.silent, b.deaf, b.fails
				}
				res, err := Reserve(t.Context(), submitter{net, alice}, net.offers(), tt.need)
				checkOutcome(t, net, res, err, tt.need, tt.found, tt.reasons)
			})
		})
	}
}

// checkOutcome compares the result of Reserve with the peers' ledgers.
func checkOutcome(t *testing.T, net *memoryNet, res *Reservation, err error, need Need, found int, reasons map[Reason]int) {
	t.Helper()
	if found == 0 {
		if err != nil {
			t.Fatal(err)
		}
		want := need.N * need.R
		if net.confirmedSlots() != want || net.used() != want {
			t.Errorf("%d slots confirmed and %d in use, want %d", net.confirmedSlots(), net.used(), want)
		}
		res.Release(t.Context(), submitter{net, alice})
	} else {
		short, ok := errors.AsType[*ShortageError](err)
		if !ok {
			t.Fatalf("got %v, want a shortage", err)
		}
		if short.FoundSlots != found || fmt.Sprint(short.Reasons) != fmt.Sprint(reasons) {
			t.Errorf("got %v, want %d found and %v", short, found, reasons)
		}
	}
	if used := net.used(); used != 0 {
		t.Errorf("S4: %d slots are still reserved", used)
	}
}

func TestReserveEndsWithItsContext(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		net := newMemoryNet(1, 20*time.Millisecond, 1, 1)
		net.peers["b"].silent = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := Reserve(ctx, submitter{net, alice}, net.offers(), Need{Job: "j", N: 1, R: 2})
		_, short := errors.AsType[*ShortageError](err)
		if !short || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a shortage at the deadline", err)
		}
		if took := time.Since(began); took > time.Second+releaseTimeout {
			t.Errorf("the reservation took %v", took)
		}
		if used := net.used(); used != 0 {
			t.Errorf("%d slots are still reserved", used)
		}
	})
}

func TestSilentPeersCostLittleWhenOthersSuffice(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		net := newMemoryNet(1, 20*time.Millisecond, 1, 1, 1, 1, 1, 1)
		net.peers["a"].deaf = true
		began := time.Now()
		if _, err := Reserve(t.Context(), submitter{net, alice}, net.offers(), Need{Job: "j", N: 2, R: 1}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > askTimeout/4 {
			t.Errorf("the reservation took %v, want at most %v", took, askTimeout/4)
		}
	})
}

// slowly is a submitter that gets the answer of one peer late.
type slowly struct {
	submitter
	peer p2ppeer.ID
	by   time.Duration
}

func (s slowly) Hold(ctx context.Context, peer p2ppeer.ID, q Request) (Grant, error) {
	if peer == s.peer {
		select {
		case <-time.After(s.by): // virtual
		case <-ctx.Done():
			return Grant{}, ctx.Err()
		}
	}
	return s.submitter.Hold(ctx, peer, q)
}

// TestReserveWaitsForTheOnlyOtherOwner: Reserve waits for a peer for up to a second if only that peer's owner
// can separate the replicas of a rank, and otherwise does not wait.
func TestReserveWaitsForTheOnlyOtherOwner(t *testing.T) {
	for _, tt := range []struct {
		name   string
		owners string // owners of the peers a, b, c, d, of which the last answers late
		by     time.Duration
		found  bool
		most   time.Duration
	}{
		{"the peer answers late", "aaab", 400 * time.Millisecond, true, 700 * time.Millisecond},
		{"the peer does not answer", "aaab", time.Hour, false, maxResponseTimeout + 500*time.Millisecond},
		{"another owner answers in time", "abcb", time.Hour, false, 500 * time.Millisecond},
		{"all have one owner", "aaaa", time.Hour, false, 500 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				net := newMemoryNet(1, 5*time.Millisecond, 2, 2, 2, 2)
				cs := net.offers()
				for i := range cs {
					cs[i].Domain = Domain{Owner: tt.owners[i : i+1], Verified: true}
				}
				began := time.Now()
				res, err := Reserve(t.Context(), slowly{submitter{net, alice}, "d", tt.by}, cs, Need{Job: "j", N: 2, R: 2})
				if err != nil {
					t.Fatal(err)
				}
				took := time.Since(began)
				got := slices.ContainsFunc(res.Placements, func(p Placement) bool { return p.Peer == "d" && len(p.Processes) == 2 })
				if got != tt.found || took > tt.most {
					t.Errorf("after %v: %v, want %t for one replica of each rank at d, within %v", took, res.Placements, tt.found, tt.most)
				}
			})
		})
	}
}

// TestSilentPeersAreSubstituted: more peers are silent than the overbooking compensates.
func TestSilentPeersAreSubstituted(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		net := newMemoryNet(1, 20*time.Millisecond, make([]int, 12)...)
		for i, c := range candidates(make([]int, 12)...) {
			net.peers[c.Peer] = &memoryPeer{ledger: NewLedger(Limits{Slots: 1}), deaf: i < 6}
		}
		began := time.Now()
		if _, err := Reserve(t.Context(), submitter{net, alice}, net.offers(), Need{Job: "j", N: 2, R: 1}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took >= askTimeout/2 {
			t.Errorf("the reservation took %v of virtual time", took)
		}
	})
}

// TestPreviouslySilentPeersAreNotWaitedFor: a peer that was silent in the first attempt does not prolong
// the next one. When the peer answers again, it is treated like any other.
func TestPreviouslySilentPeersAreNotWaitedFor(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		net := newMemoryNet(1, 20*time.Millisecond, 1, 1, 1)
		net.peers["b"].deaf = true
		cs, need := net.offers(), Need{Job: "j", N: 1, R: 3}
		attempt := func() (took time.Duration, short *ShortageError) {
			began := time.Now()
			_, err := Reserve(t.Context(), submitter{net, alice}, cs, need)
			if short, _ = errors.AsType[*ShortageError](err); short != nil {
				short.Unheard(cs)
			}
			return time.Since(began), short
		}
		first, short := attempt()
		if short == nil || first < askTimeout {
			t.Fatalf("after %v: %v, want a shortage once the silent peer has timed out", first, short)
		}
		second, short := attempt()
		if short == nil || short.FoundSlots != 2 || short.Reasons[Silent] != 1 || second > askTimeout/4 {
			t.Fatalf("after %v: %v, want 2 slots and one silent peer after a short time", second, short)
		}
		net.peers["b"].deaf = false
		if _, short = attempt(); short != nil {
			t.Errorf("%v, although all peers answer again", short)
		}
	})
}

func TestReserveRefusesInvalidRequests(t *testing.T) {
	for _, need := range []Need{{}, {Job: "j", N: 1}, {Job: "j", R: 1}, {N: 1, R: 1}, {Job: "j", N: 1 << 40, R: 1 << 40}} {
		if _, err := Reserve(t.Context(), nil, nil, need); err == nil {
			t.Errorf("%+v was accepted", need)
		}
	}
}

// TestCompetingSubmittersAllFinish: every submitter wants more than half of all slots, so any two compete,
// and only backing off helps.
func TestCompetingSubmittersAllFinish(t *testing.T) {
	const perPeer, work = 2, 3 * time.Second
	for submitters := 2; submitters <= 5; submitters++ {
		for range 10 {
			seed := rand.Uint64()
			virtualtime.Test(t, func(t *testing.T) {
				net := newMemoryNet(seed, 30*time.Millisecond, perPeer, perPeer, perPeer, perPeer)
				began := time.Now()
				var wg sync.WaitGroup
				for i := range submitters {
					s := submitter{net, p2ppeer.ID(fmt.Sprint("submitter", i))}
					wg.Go(func() { runJob(t, s, rand.New(rand.NewPCG(seed, uint64(i+1))), work) })
				}
				wg.Wait()
				took := time.Since(began)
				t.Logf("seed %d: %d submitters took %v", seed, submitters, took)
				if most := time.Duration(submitters) * (work + 2*backoffMost); took > most {
					t.Errorf("seed %d: %d submitters took %v, more than %v", seed, submitters, took, most)
				}
				if used := net.used(); used != 0 {
					t.Errorf("seed %d: %d slots are still reserved", seed, used)
				}
			})
		}
	}
}

// runJob does the same as p2prun: it tries until it has all its slots, uses them, and gives them back.
func runJob(t *testing.T, s submitter, rnd *rand.Rand, work time.Duration) {
	need := Need{Job: "j", N: 3, R: 2} // 6 slots of 8
	for attempt := 0; ; attempt++ {
		res, err := Reserve(t.Context(), s, s.offers(), need)
		if err == nil {
			time.Sleep(work) // virtual: in a synctest bubble
			if got := s.used(); got < need.N*need.R {
				t.Errorf("%s: slots lost while working, %d in use", s.id, got)
			}
			res.Release(t.Context(), s)
			return
		}
		time.Sleep(Backoff(attempt, rnd))
	}
}

func TestBackoffGrowsAndIsBounded(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for attempt, most := range map[int]time.Duration{-1: backoffFirst, 0: backoffFirst, 3: 8 * backoffFirst, 6: backoffMost, 1 << 30: backoffMost} {
		for range 100 {
			if d := Backoff(attempt, rnd); d < most/4 || d > most+most/4 {
				t.Fatalf("attempt %d: %v, want %v to %v", attempt, d, most/4, most+most/4)
			}
		}
	}
}

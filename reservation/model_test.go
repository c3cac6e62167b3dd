package reservation

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A model contains the slots that holders may believe to have: the slots of each key and their expiry. It is
// derived only from the answers, and independent of the ledger's decisions.
type model struct {
	slots  int
	belief map[Key]*belief
}

type belief struct {
	submitter p2ppeer.ID
	job       string
	slots     int
	until     time.Time
	state     State
}

// owned returns the number of slots that holders may believe to have at now.
func (m *model) owned(now time.Time) int {
	sum := 0
	for key, b := range m.belief {
		if b.state != Running && !now.Before(b.until) {
			delete(m.belief, key)
			continue
		}
		sum += b.slots
	}
	return sum
}

// step applies one random operation to both and returns an error if the ledger is wrong.
func (m *model) step(l *Ledger, rnd *rand.Rand, fresh Key, now time.Time) error {
	submitter := []p2ppeer.ID{alice, bob}[rnd.IntN(2)]
	job := fmt.Sprint("job", rnd.IntN(3))
	key, b := m.pick(rnd)
	m.owned(now) // drops expired beliefs
	known := m.belief[key] == b && b.submitter == submitter
	n := rnd.IntN(m.slots + 2)
	switch rnd.IntN(7) {
	case 0, 1, 2:
		g, err := l.Hold(Request{Job: job, Submitter: submitter, Slots: n, Waits: rnd.IntN(2) == 0}, fresh, now)
		if err != nil {
			return nil
		}
		return m.hold(g, n, fresh, submitter, job)
	case 3:
		err := l.Confirm(key, submitter, n, now)
		if may := known && b.state != Running && n >= 1 && n <= b.slots; (err == nil) != may {
			return fmt.Errorf("confirm %d of %+v by %s: allowed %v", n, b, submitter, err == nil)
		}
		if err == nil {
			if b.state == Held {
				b.state, b.until = Confirmed, now.Add(ConfirmedLease)
			}
			b.slots = n
		}
	case 4:
		_, err := l.Redeem(key, b.job, submitter, now)
		if may := known && b.state == Confirmed; (err == nil) != may {
			return fmt.Errorf("redeem of %+v by %s: allowed %v", b, submitter, err == nil)
		}
		if err == nil {
			b.state = Running
		}
	case 5:
		l.Release(key)
		delete(m.belief, key)
	case 6:
		l.Withdraw(job, submitter, rnd.IntN(2) == 0)
		for k, b := range m.belief {
			if b.submitter == submitter && b.job == job && b.state != Running {
				delete(m.belief, k)
			}
		}
	}
	return nil
}

// hold applies a grant, which adds a belief or enlarges one.
func (m *model) hold(g Grant, wanted int, fresh Key, submitter p2ppeer.ID, job string) error {
	old := m.belief[g.Key]
	if old == nil {
		if g.Key != fresh || g.Slots < 1 || g.Slots > wanted {
			return fmt.Errorf("the ledger granted %+v for %d slots", g, wanted)
		}
		m.belief[g.Key] = &belief{submitter: submitter, job: job, slots: g.Slots, until: g.Expires, state: Held}
		return nil
	}
	if old.state == Running || old.submitter != submitter || old.job != job || g.Slots < old.slots || g.Expires != old.until {
		return fmt.Errorf("the ledger granted %+v again to %s of %s, was %+v", g, job, submitter, old)
	}
	old.slots = g.Slots
	return nil
}

// pick returns a key that is or was in use, or an unused one.
func (m *model) pick(rnd *rand.Rand) (Key, *belief) {
	i := rnd.IntN(len(m.belief) + 1)
	for key, b := range m.belief {
		if i == 0 {
			return key, b
		}
		i--
	}
	return Key{}, &belief{}
}

func TestS1SlotIsNeverGrantedTwice(t *testing.T) {
	for range 200 {
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 0))
		limits := Limits{Slots: 1 + rnd.IntN(6), MaxJobs: rnd.IntN(4)}
		l, m := NewLedger(limits), &model{slots: limits.Slots, belief: map[Key]*belief{}}
		now := start
		for i := range 300 {
			fresh := Key{byte(i), byte(i >> 8), 1}
			if err := m.step(l, rnd, fresh, now); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
			l.Expire(now)
			s, owned := l.Snapshot(), m.owned(now)
			if owned > limits.Slots || s.Total-s.Free != owned || s.Held+s.Confirmed+s.Running != owned {
				t.Fatalf("seed %d, step %d: holders have %d of %d slots, ledger has %+v", seed, i, owned, limits.Slots, s)
			}
			if limits.MaxJobs > 0 && m.jobs() > limits.MaxJobs {
				t.Fatalf("seed %d, step %d: %d jobs, limit %d", seed, i, m.jobs(), limits.MaxJobs)
			}
			now = now.Add(time.Duration(rnd.ExpFloat64() * float64(4*time.Second)))
		}
	}
}

func (m *model) jobs() int {
	names := map[string]bool{}
	for _, b := range m.belief {
		names[string(b.submitter)+"/"+b.job] = true
	}
	return len(names)
}

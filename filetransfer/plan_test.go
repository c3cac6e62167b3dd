package filetransfer

import (
	"testing"
	"time"
)

// asks returns what the plan asks of a source now.
func asks(p *plan, id int, now time.Duration) (units []int, fresh bool) {
	for {
		u, f, ok := p.next(id, now)
		if !ok {
			return units, fresh
		}
		units, fresh = append(units, u), f
	}
}

func set(n int, units ...int) bitset {
	b := newBitset(n)
	for _, u := range units {
		b.add(u)
	}
	return b
}

func TestPlanTakesEverythingInOrderFromTheOriginAlone(t *testing.T) {
	p := newPlan(40, set(40, 1), 0, 1, 0)
	p.joined(origin, 0)
	units, fresh := asks(p, origin, 0)
	if len(units) != soleWindow || fresh || units[0] != 0 || units[1] != 2 {
		t.Fatalf("asks for %v, fresh %v", units, fresh)
	}
	p.arrived(origin, 0)
	if units, _ = asks(p, origin, 0); len(units) != 1 || units[0] != soleWindow+1 {
		t.Errorf("then for %v", units)
	}
	p.parted(origin)
	p.joined(origin, 0)
	if units, _ = asks(p, origin, 0); len(units) != soleWindow || units[0] != 2 {
		t.Errorf("on another stream for %v", units)
	}
}

func TestPlanAsksFirstForWhatFewestHave(t *testing.T) {
	p := newPlan(8, newBitset(8), 3, 1, 0)
	for id := 1; id <= 3; id++ {
		p.joined(id, 0)
	}
	p.has(1, set(8, 0, 1, 2), nil)
	p.has(2, set(8, 0, 1), nil)
	p.has(3, set(8, 0), []uint32{1})
	if u, _, ok := p.next(1, 0); !ok || u != 2 {
		t.Errorf("asks for %d, want the unit that only this fellow has", u)
	}
	if _, _, ok := p.next(2, 0); !ok {
		t.Error("asks the second fellow for nothing")
	}
}

func TestPlanAsksTheOriginForWhatNobodyHas(t *testing.T) {
	p := newPlan(4, newBitset(4), 2, 1, 0)
	p.joined(origin, 0)
	p.joined(1, 0)
	p.has(1, set(4, 0, 1), nil)
	units, fresh := asks(p, origin, 0)
	if !fresh || len(units) != freshWindow || units[0]+units[1] != 5 {
		t.Fatalf("asks for %v, fresh %v; want 2 and 3", units, fresh)
	}
	p.declined(set(4, 2, 3))
	p.declined(set(4, 2, 3))
	if units, _ = asks(p, origin, 0); units != nil {
		t.Errorf("asks at once for %v, which others are given", units)
	}
	if units, fresh = asks(p, origin, 2*patience); len(units) == 0 || !fresh {
		t.Errorf("asks for %v in need", units)
	}
}

func TestPlanTakesFromTheOriginWhenNoFellowIsInReach(t *testing.T) {
	p := newPlan(40, newBitset(40), 2, 1, 0)
	p.joined(origin, 0)
	if units, fresh := asks(p, origin, 0); len(units) != freshWindow || !fresh {
		t.Fatalf("asks for %v, fresh %v", units, fresh)
	}
	if units, fresh := asks(p, origin, grace); len(units) != soleWindow-freshWindow || fresh {
		t.Errorf("asks for %v, fresh %v when no fellow has come", units, fresh)
	}
}

// What a silent fellow was asked for is asked of another one; what it sends late
// counts.
func TestPlanAsksOthersForWhatASilentFellowOwes(t *testing.T) {
	p := newPlan(2, newBitset(2), 2, 1, 0)
	p.joined(1, 0)
	p.joined(2, 0)
	p.has(1, set(2, 0, 1), nil)
	if units, _ := asks(p, 1, 0); len(units) != 2 {
		t.Fatalf("asks for %v", units)
	}
	p.has(2, set(2, 0, 1), nil)
	if units, _ := asks(p, 2, endgame); units != nil {
		t.Fatalf("asks another fellow at once for %v", units)
	}
	p.tick(silence + 1)
	if units, _ := asks(p, 2, silence+1); len(units) != 2 {
		t.Errorf("asks the other fellow for %v", units)
	}
	p.sending(1, silence+2)
	p.arrived(1, silence+2)
	p.arrived(1, silence+2)
	if !p.complete() {
		t.Error("what came late does not count")
	}
	if _, wanted, ok := p.front(2); wanted || !ok {
		t.Error("what came from one is still wanted from the other")
	}
	p.arrived(2, silence+2)
	p.arrived(2, silence+2)
	if p.left != 0 || p.asked[0] != 0 || p.asked[1] != 0 {
		t.Errorf("%d left, asked %v", p.left, p.asked)
	}
}

package filetransfer

import (
	"slices"
	"testing"
	"time"
)

// asks returns the units that the plan requests from a source now.
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

func TestPlanUsesOnlyTheOriginInOrder(t *testing.T) {
	p := newPlan(160, set(160, 1), 0, 1, 0)
	p.connected(origin, 0)
	units, fresh := asks(p, origin, 0)
	if len(units) != soleWindow || fresh || units[0] != 0 || units[1] != 2 {
		t.Fatalf("the plan requests %v, fresh %v", units, fresh)
	}
	p.arrived(origin, 0)
	if units, _ = asks(p, origin, 0); len(units) != 1 || units[0] != soleWindow+1 {
		t.Errorf("after the first unit, the plan requests %v", units)
	}
	p.disconnected(origin)
	p.connected(origin, 0)
	if units, _ = asks(p, origin, 0); len(units) != soleWindow || units[0] != 2 {
		t.Errorf("the plan requests %v on another stream", units)
	}
}

func TestPlanRequestsTheRarestFirst(t *testing.T) {
	p := newPlan(8, newBitset(8), 3, 1, 0)
	for id := 1; id <= 3; id++ {
		p.connected(id, 0)
	}
	p.has(1, set(8, 0, 1, 2), nil)
	p.has(2, set(8, 0, 1), nil)
	p.has(3, set(8, 0), []uint32{1})
	if u, _, ok := p.next(1, 0); !ok || u != 2 {
		t.Errorf("the plan requests %d, want the unit that only this member has", u)
	}
	if _, _, ok := p.next(2, 0); !ok {
		t.Error("the plan requests nothing from the second member")
	}
}

func TestPlanRequestsMissingUnitsFromTheOrigin(t *testing.T) {
	p := newPlan(4, newBitset(4), 2, 1, 0)
	p.connected(origin, 0)
	p.connected(1, 0)
	p.has(1, set(4, 0, 1), nil)
	units, fresh := asks(p, origin, 0)
	if !fresh || len(units) != freshWindow || units[0]+units[1] != 5 {
		t.Fatalf("the plan requests %v, fresh %v; want 2 and 3", units, fresh)
	}
	p.declined(set(4, 2, 3), 0)
	p.declined(set(4, 2, 3), 0)
	if units, _ = asks(p, origin, 0); units != nil {
		t.Errorf("the plan requests %v at once, although the origin has given them to other peers", units)
	}
	if units, fresh = asks(p, origin, 2*originTimeout); len(units) == 0 || !fresh {
		t.Errorf("the plan requests %v when starving", units)
	}
}

func TestPlanUsesTheOriginIfNoMemberIsReachable(t *testing.T) {
	p := newPlan(160, newBitset(160), 2, 1, 0)
	p.connected(origin, 0)
	if units, fresh := asks(p, origin, 0); len(units) != freshWindow || !fresh {
		t.Fatalf("the plan requests %v, fresh %v", units, fresh)
	}
	if units, fresh := asks(p, origin, memberTimeout); len(units) != soleWindow-freshWindow || fresh {
		t.Errorf("the plan requests %v, fresh %v before any member is connected", units, fresh)
	}
}

// On a busy machine or a distant network, members take as long to reach as the origin did.
func TestPlanWaitsLongerForMembersIfTheOriginWasSlow(t *testing.T) {
	p := newPlan(160, newBitset(160), 2, 1, 0)
	p.connected(origin, memberTimeout)
	p.connected(origin, 2*memberTimeout) // only the first stream determines the time to reach the origin
	if units, fresh := asks(p, origin, 4*memberTimeout-1); len(units) != freshWindow || !fresh {
		t.Errorf("the plan requests %v, fresh %v", units, fresh)
	}
	if units, fresh := asks(p, origin, 4*memberTimeout); len(units) != soleWindow-freshWindow || fresh {
		t.Errorf("the plan requests %v, fresh %v after a long time without members", units, fresh)
	}
}

// A source that answers quickly gets a larger window until it becomes slow.
func TestPlanEnlargesTheWindowOfAFastSource(t *testing.T) {
	p := newPlan(160, newBitset(160), 1, 1, 0)
	p.connected(origin, 0)
	p.connected(1, 0)
	p.has(1, newBitset(160), nil)
	if units, _ := asks(p, origin, 0); len(units) != freshWindow {
		t.Fatalf("the plan first requests %v", units)
	}
	p.arrived(origin, quickInterval-1)
	if units, _ := asks(p, origin, quickInterval); len(units) != quickFactor*freshWindow-1 {
		t.Errorf("the plan requests %v from a fast source", units)
	}
	for range quickFactor*freshWindow - 1 {
		p.arrived(origin, 3*quickInterval)
	}
	if units, _ := asks(p, origin, 3*quickInterval); len(units) != quickFactor*freshWindow-1 {
		t.Errorf("the plan requests %v from a fast and distant source, whose units arrive together", units)
	}
	p.arrived(origin, 5*quickInterval)
	if units, _ := asks(p, origin, 5*quickInterval); len(units) != 0 {
		t.Errorf("the plan requests %v from the source once it is slow", units)
	}
}

// Each of two neighbours owns a unit that arrives slowly. Each requests its unit from a second site, although
// the neighbour's unit is not requested here.
func TestPlanUsesASecondSiteWhileANeighborOwnsUnits(t *testing.T) {
	const units = 16
	p := newPlan(units, newBitset(units), 3, 1, 0)
	p.place(1, map[int]uint64{3: 2})
	for id := 1; id <= 3; id++ {
		p.connected(id, 0)
	}
	p.has(3, newBitset(units), nil) // the neighbour
	own := -1
	for u := range units {
		if p.owner(u) == itself && own < 0 {
			own = u
		}
	}
	neighbours := p.find(0, func(u int) bool { return p.owner(u) != itself })
	for id := 1; id <= 2; id++ {
		p.has(id, set(units, own, neighbours), nil)
	}
	if got, _ := asks(p, 1, 0); !slices.Equal(got, []int{own}) {
		t.Fatalf("the plan requests %v from the slow site, want %d", got, own)
	}
	for now := time.Second; now < responseTimeout; now += time.Second {
		p.sending(1, now) // some bytes of the unit
		p.tick(now)
		if got, _ := asks(p, 2, now); got != nil {
			t.Fatalf("the plan requests %v from a second site after %v", got, now)
		}
	}
	if got, _ := asks(p, 2, responseTimeout+1); !slices.Equal(got, []int{own}) {
		t.Errorf("the plan requests %v from the second site, want %d", got, own)
	}
}

// While some missing units are not requested, none is requested from two other sites, because each copy
// takes time on a slow link.
func TestPlanRequestsFromASecondSiteOnlyAtTheEnd(t *testing.T) {
	const units = memberWindow + 1
	p := newPlan(units, newBitset(units), 2, 1, 0)
	p.connected(1, 0)
	p.connected(2, 0)
	all := newBitset(units)
	for u := range units {
		all.add(u)
	}
	p.has(1, all, nil)
	first, _ := asks(p, 1, 0)
	p.has(2, set(units, first...), nil)
	if more, _ := asks(p, 2, 2*endgame); more != nil {
		t.Fatalf("the plan requests %v from a second site while another unit is not requested", more)
	}
	p.arrived(1, 2*endgame)
	if more, _ := asks(p, 1, 2*endgame); len(more) != 1 {
		t.Fatalf("the plan requests %v from the first site", more)
	}
	if more, _ := asks(p, 2, 5*endgame); len(more) == 0 {
		t.Error("the plan requests nothing from a second site at the end")
	}
}

// Units requested from a silent member are requested from another one. A unit that the silent member sends
// late still counts.
func TestPlanReassignsUnitsOfASilentMember(t *testing.T) {
	p := newPlan(2, newBitset(2), 2, 1, 0)
	p.connected(1, 0)
	p.connected(2, 0)
	p.has(1, set(2, 0, 1), nil)
	if units, _ := asks(p, 1, 0); len(units) != 2 {
		t.Fatalf("the plan requests %v", units)
	}
	p.has(2, set(2, 0, 1), nil)
	if units, _ := asks(p, 2, endgame); units != nil {
		t.Fatalf("the plan requests %v from another member at once", units)
	}
	p.tick(responseTimeout + 1)
	if units, _ := asks(p, 2, responseTimeout+1); len(units) != 2 {
		t.Errorf("the plan requests %v from the other member", units)
	}
	p.sending(1, responseTimeout+2)
	p.arrived(1, responseTimeout+2)
	p.arrived(1, responseTimeout+2)
	if !p.complete() {
		t.Error("a late unit does not count")
	}
	p.arrived(2, responseTimeout+2)
	p.arrived(2, responseTimeout+2)
	if p.left != 0 || p.asked[0] != 0 || p.asked[1] != 0 {
		t.Errorf("%d units are left, and the plan requests %v", p.left, p.asked)
	}
}

// An origin that counted as silent while its answers waited for the disk is asked again.
func TestPlanAsksTheOriginAgainOnceItAnswers(t *testing.T) {
	const later = responseTimeout + 1
	for name, tt := range map[string]struct {
		answer func(p *plan)
		want   int // number of units requested afterwards
	}{
		"by sending":   {func(p *plan) { p.arrived(origin, later) }, 8 - freshWindow}, // all others, because the origin is quick
		"by declining": {func(p *plan) { p.declined(newBitset(8), later) }, freshWindow},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlan(8, newBitset(8), 1, 1, 0)
			p.connected(origin, 0)
			p.connected(1, 0)
			p.has(1, newBitset(8), nil)
			if units, _ := asks(p, origin, 0); len(units) != freshWindow {
				t.Fatalf("the plan requests %v", units)
			}
			if p.tick(later); !p.sources[origin].silent {
				t.Fatal("the origin is not considered silent")
			}
			for range freshWindow {
				tt.answer(p)
			}
			if units, _ := asks(p, origin, later); len(units) != tt.want {
				t.Errorf("after the answer, the plan requests %v", units)
			}
		})
	}
}

// If nothing arrives for a long time, units that the origin has given to others are requested without the
// mark fresh. The origin does not decline such requests.
func TestPlanDoesNotStarve(t *testing.T) {
	p := newPlan(8, newBitset(8), 1, 1, 0)
	p.connected(origin, 0)
	p.connected(1, 0)
	p.has(1, newBitset(8), nil)
	for now := time.Duration(0); now < starvationTimeout; now += tickEvery {
		units, fresh := asks(p, origin, now)
		if len(units) > 0 && !fresh {
			t.Fatalf("the plan requests %v without the mark fresh at %v", units, now)
		}
		for range units {
			p.declined(set(8, 0, 1, 2, 3, 4, 5, 6, 7), now)
		}
	}
	if units, fresh := asks(p, origin, starvationTimeout); len(units) != 8 || fresh {
		t.Errorf("the plan requests %v, fresh %v", units, fresh)
	}
}

// The origin is asked for the units of a silent member, even if two silent members have been asked for the
// same unit. A message without news is not a sign of life.
func TestPlanDoesNotRelyOnSilentMembers(t *testing.T) {
	p := newPlan(1, newBitset(1), 2, 1, 0)
	p.connected(origin, 0)
	for id := 1; id <= 2; id++ {
		p.connected(id, 0)
		if !p.has(id, set(1, 0), nil) {
			t.Error("the first announcement is not new")
		}
	}
	if p.has(1, set(1, 0), []uint32{0}) {
		t.Error("a repeated announcement is new")
	}
	asks(p, 1, 0)
	asks(p, 2, 2*endgame)
	if p.asked[0] != 2 {
		t.Fatalf("unit 0 is requested from %d sources", p.asked[0])
	}
	if units, _ := asks(p, origin, 2*originTimeout); len(units) != 1 {
		t.Errorf("the plan requests %v from the origin although two sources owe unit 0", units)
	}
	p.tick(2*originTimeout + responseTimeout)
	if p.held[0] != 0 {
		t.Errorf("%d sources have unit 0", p.held[0])
	}
	p.sending(1, 3*originTimeout+responseTimeout)
	p.disconnected(2)
	if p.held[0] != 1 {
		t.Errorf("%d sources have unit 0 after it was announced again", p.held[0])
	}
}

package display

import (
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/reservation"
)

func TestReasonsFitTheScreen(t *testing.T) {
	s := &job.Shortage{Wanted: 8, Available: 5}
	for _, r := range []job.Reason{
		job.Busy, job.Denied, job.WasmOnly, job.Unconfined, job.Paused, job.Versions, job.Platforms, job.TooSmall, job.NotChosen, job.Unreachable, job.NoAnswer, job.Leaving, job.HoldEnded,
		job.Unfit, job.OtherNetwork, job.SameMachine, job.Nonsense,
	} {
		s.Tallies = append(s.Tallies, job.Tally{Reason: r, Peers: 1000})
	}
	lines := reasons(s)
	if len(lines) != 1+len(s.Tallies) || !strings.Contains(lines[0], "of 8 slots needed, 5 available") {
		t.Fatalf("the table of reasons is %q", lines)
	}
	for _, l := range lines {
		if len("p2prun: "+l) > routeWidth || strings.HasSuffix(l, " ") {
			t.Errorf("a line of %d characters, or without an explanation: %q", len(l)+8, l)
		}
	}
	if reasons(nil) != nil || reasons(&job.Shortage{Wanted: 8, Available: 5}) != nil {
		t.Error("got a table without rejections")
	}
}

func TestPlanNamesPeers(t *testing.T) {
	lines := plan([]submit.Planned{{
		Peer: "12D3KooWabcdefgh", Processes: []view.Process{{Rank: 0}, {Rank: 1}}, RTT: 12345 * time.Microsecond, Speed: 1500,
		Domain: reservation.Domain{Addresses: []string{"192.0.2.1"}, Site: "attic", Owner: "alice", Verified: true},
	}, {Peer: "x", Domain: reservation.Domain{Owner: "12D3KooWQYhTNQdmr3ArTeUHRYzFg94BKyTkoWBDWez9kSCVe2Xo"}}})
	if len(lines) != 3 || !strings.Contains(lines[2], " …kSCVe2Xo? ") {
		t.Fatalf("the plan is %q, want three lines and a shortened owner", lines)
	}
	for _, want := range []string{"abcdefgh", "192.0.2.1", "12.3ms", "1500", " alice ", "attic", "0.0 1.0"} {
		if !strings.Contains(lines[1], want) {
			t.Errorf("got %q, want %q", lines[1], want)
		}
	}
}

// TestPlanShowsSlotsSharingAMachine checks that slots of several peers on one machine are listed, and that slots
// of a single peer are not.
func TestPlanShowsSlotsSharingAMachine(t *testing.T) {
	on := func(peer, machine string, ranks ...int) submit.Planned {
		p := submit.Planned{Peer: "12D3KooW" + peer, Machine: machine}
		for _, rank := range ranks {
			p.Processes = append(p.Processes, view.Process{Rank: rank})
		}
		return p
	}
	lines := plan([]submit.Planned{
		on("aaaaaaaa", "0123", 0, 1), on("bbbbbbbb", "4567", 0, 1), on("cccccccc", "0123", 2), on("dddddddd", "", 2), on("eeeeeeee", "", 3),
	})
	got := lines[6:]
	if len(got) != 1 || got[0] != "3 slots share a machine: the slots of peers …aaaaaaaa, …cccccccc" {
		t.Errorf("the note about machines is %q", got)
	}
}

func TestPlanFitsTheScreen(t *testing.T) {
	p := submit.Planned{
		Peer: "12D3KooWabcdefgh", RTT: 1234567 * time.Microsecond, Speed: 1234567,
		Domain: reservation.Domain{Addresses: []string{"2001:db8:1234:5678::/64"}, Site: "the attic of the house", Owner: "alice and bob"},
	}
	for rank := range 12 {
		p.Processes = append(p.Processes, view.Process{Rank: 100 + rank})
	}
	lines := plan([]submit.Planned{p})
	for _, l := range lines {
		if n := len([]rune("p2prun: " + l)); n > 80 {
			t.Errorf("%d columns: %q", n, l)
		}
	}
	if all := strings.Join(lines, "\n"); !strings.Contains(all, "100.0\n") || !strings.Contains(all, "2001:db8:1234:…") || !strings.Contains(all, "alice an…?") {
		t.Errorf("the plan is %s", all)
	}
}

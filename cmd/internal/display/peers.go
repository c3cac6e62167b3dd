package display

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// reasons returns a table of the reasons why peers gave no slots to a job that could not start, with the number
// of peers for each reason.
func reasons(s *job.Shortage) []string {
	if s == nil || len(s.Tallies) == 0 {
		return nil
	}
	head := fmt.Sprintf("%-16s %5s  of %s needed, %d available", "rejected", "peers", number(int64(s.Wanted), "slot", "slots"), s.Available)
	lines := []string{head}
	for _, t := range s.Tallies {
		lines = append(lines, fmt.Sprintf("%-16s %5d  %s", t.Reason, t.Peers, t.Reason.Meaning()))
	}
	return lines
}

// planRow is the format of a line of plan.
const planRow = "%-9s %-15s %7s %7s %-10s %-8s %s"

// plan returns a table of the peers on which a job would run. With the command's name in front it fits 80
// columns: long fields are cut, and a long list of processes takes several lines.
func plan(planned []submit.Planned) []string {
	if len(planned) == 0 {
		return nil
	}
	lines := []string{fmt.Sprintf(planRow, "peer", "address", "RTT", "Mflop/s", "owner", "site", "processes")}
	for _, p := range planned {
		address := cmp.Or(slices.Concat(p.Domain.Addresses, []string{p.Domain.Said, "-"})...)
		processes := inLines(names(p.Processes), 10)
		lines = append(lines, fmt.Sprintf(planRow, submit.ShortPeer(p.Peer), printable(address, 15), p.RTT.Round(100*time.Microsecond),
			fmt.Sprint(p.Speed), ownerOf(p.Domain), cmp.Or(printable(p.Domain.Site, 8), "-"), processes[0]))
		for _, more := range processes[1:] {
			lines = append(lines, fmt.Sprintf(planRow, "", "", "", "", "", "", more))
		}
	}
	return append(lines, machines(planned)...)
}

// machines describes which peers of a plan share a machine, and how many slots they have there.
func machines(planned []submit.Planned) (lines []string) {
	peers, slots := make(map[string][]string), make(map[string]int)
	var order []string
	for _, p := range planned {
		if p.Machine == "" {
			continue
		}
		if peers[p.Machine] == nil {
			order = append(order, p.Machine)
		}
		peers[p.Machine] = append(peers[p.Machine], submit.ShortPeer(p.Peer))
		slots[p.Machine] += len(p.Processes)
	}
	for _, m := range order {
		if len(peers[m]) > 1 {
			lines = append(lines, fmt.Sprintf("%d slots share a machine: the slots of peers %s", slots[m], strings.Join(peers[m], ", ")))
		}
	}
	return lines
}

// ownerOf formats an owner in 10 columns. A question mark indicates an unverified claim.
func ownerOf(d reservation.Domain) string {
	owner := d.Owner
	if _, err := p2ppeer.Decode(owner); err == nil {
		owner = submit.ShortPeer(owner)
	}
	switch {
	case owner == "":
		return "-"
	case d.Verified:
		return printable(owner, 10)
	}
	return printable(owner, 9) + "?"
}

// inLines wraps a text between words into lines of at most width characters. It returns at least one
// line, and keeps longer words whole.
func inLines(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

package display

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// Reasons says in a table, by reason, how many peers give nothing to a job that cannot start.
func Reasons(s *job.Shortage) []string {
	if s == nil || len(s.Tallies) == 0 {
		return nil
	}
	lines := []string{fmt.Sprintf("%-16s %5s  of %d slots wanted, %d could be had", "passed over", "peers", s.Wanted, s.Available)}
	for _, t := range s.Tallies {
		lines = append(lines, fmt.Sprintf("%-16s %5d  %s", t.Reason, t.Peers, t.Reason.Meaning()))
	}
	return lines
}

// Plan says in a table on which peers a job would run.
func Plan(planned []job.Planned) []string {
	if len(planned) == 0 {
		return nil
	}
	lines := []string{fmt.Sprintf("%-10s %-15s %8s %7s %-10s %-10s %s", "peer", "address", "RTT", "Mflop/s", "owner", "site", "processes")}
	for _, p := range planned {
		address := cmp.Or(slices.Concat(p.Domain.Addresses, []string{p.Domain.Said, "-"})...)
		owner := p.Domain.Owner
		if _, err := p2ppeer.Decode(owner); err == nil {
			owner = job.ShortPeer(owner)
		}
		if owner != "" && !p.Domain.Verified {
			owner += "?" // by its own word
		}
		lines = append(lines, fmt.Sprintf("%-10s %-15s %8s %7d %-10s %-10s %s",
			job.ShortPeer(p.Peer), address, p.RTT.Round(100*time.Microsecond), p.Speed, cmp.Or(owner, "-"), cmp.Or(p.Domain.Site, "-"), strings.TrimSpace(names(p.Processes))))
	}
	return lines
}

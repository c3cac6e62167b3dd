package submit

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A sharedCause is a single failure that may stop several peers of a job.
type sharedCause struct {
	place string // where a rank is whose replicas share the cause
	names func(Planned) []string
}

// sharedCauses are the causes that allocation cannot always avoid. Machines are not among them: two replicas of
// a rank never share one.
var sharedCauses = []sharedCause{
	{"behind one relay", func(p Planned) []string {
		if p.Relay == "" {
			return nil
		}
		return []string{ShortPeer(p.Relay)}
	}},
	{"at one public address", func(p Planned) []string {
		return slices.DeleteFunc(append(slices.Clone(p.Domain.Addresses), p.Domain.Said), func(name string) bool { return !public(name) })
	}},
	{"on machines of one owner", func(p Planned) []string {
		owner := p.Domain.Owner
		if _, err := p2ppeer.Decode(owner); err == nil {
			owner = ShortPeer(owner)
		}
		switch {
		case owner == "":
			return nil
		case p.Domain.Verified:
			return []string{owner}
		}
		return []string{owner + ", by their own account"}
	}},
}

// correlated returns a warning, in one sentence, about the ranks that a single failure may stop
// with all their replicas, as far as their placement shows. It returns "" if there are none.
func correlated(planned []Planned, n, r int) string {
	if r < 2 {
		return ""
	}
	var parts []string
	for _, cause := range sharedCauses {
		var ranks []int
		names := make(map[string]bool)
		for rank := range n {
			if name := sharedBy(planned, rank, cause.names); name != "" {
				ranks = append(ranks, rank)
				names[name] = true
			}
		}
		if len(ranks) > 0 {
			parts = append(parts, theRanks(ranks, n)+" "+cause.place+nameOf(names))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "one failure may stop all replicas of a rank: " + strings.Join(parts, "; ")
}

// sharedBy returns a name that all peers of a rank have in common, or "".
func sharedBy(planned []Planned, rank int, names func(Planned) []string) string {
	var common []string
	first := true
	for _, p := range planned {
		if !p.runs(rank) {
			continue
		}
		has := names(p)
		if first {
			common, first = has, false
		} else {
			common = slices.DeleteFunc(common, func(name string) bool { return !slices.Contains(has, name) })
		}
	}
	return cmp.Or(append(common, "")...)
}

// theRanks returns the beginning of a clause about some of n ranks.
func theRanks(ranks []int, n int) string {
	switch {
	case len(ranks) == 1:
		return fmt.Sprintf("rank %d is", ranks[0])
	case len(ranks) == n:
		return fmt.Sprintf("all %d ranks are", n)
	case len(ranks) == 2:
		return fmt.Sprintf("ranks %d and %d are", ranks[0], ranks[1])
	}
	return fmt.Sprintf("%d ranks are", len(ranks))
}

// nameOf returns the end of a clause about ranks that share one of the names.
func nameOf(names map[string]bool) string {
	if len(names) > 1 {
		return " each"
	}
	return " (" + strings.Join(slices.Collect(maps.Keys(names)), "") + ")"
}

// public reports whether the name of a router, as returned by home, is a public Internet address.
func public(name string) bool {
	address, _, _ := strings.Cut(name, "/")
	ip, err := netip.ParseAddr(address)
	return err == nil && ip.IsGlobalUnicast() && !ip.IsPrivate()
}

package submit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// The reasons of discovery and reservation that are reported to the user. Peers without offers are
// left out: they are submitters like this one.
var (
	ofDiscovery = map[discovery.Reason]job.Reason{
		discovery.Full: job.Busy, discovery.TooSmall: job.TooSmall, discovery.OtherPlatform: job.Platforms,
		discovery.NotChosen: job.NotChosen, discovery.OtherVersion: job.Versions, discovery.OtherNetwork: job.OtherNetwork,
		discovery.Silent: job.NoAnswer, discovery.Unreachable: job.Unreachable,
		discovery.Expired: job.Nonsense, discovery.BadOffer: job.Nonsense,
	}
	ofReservation = map[reservation.Reason]job.Reason{
		reservation.Busy: job.Busy, reservation.MaxJobs: job.Busy, reservation.Denied: job.Denied,
		reservation.WasmOnly: job.WasmOnly, reservation.Unconfined: job.Unconfined, reservation.Paused: job.Paused, reservation.NoDisk: job.NoDisk,
		reservation.Draining: job.Leaving, reservation.Version: job.Versions, reservation.UnknownKey: job.HoldEnded,
		reservation.Malformed: job.Nonsense, reservation.SameMachine: job.SameMachine, reservation.Unreachable: job.Unreachable, reservation.Silent: job.NoAnswer,
	}
)

// considered records the verdict on every peer that was considered for the job.
type considered map[p2ppeer.ID]verdict

// A verdict is the reason why a peer does not take part, with details.
type verdict struct {
	reason job.Reason
	detail string
}

// newConsidered returns the verdicts on the peers that discovery passed over.
func newConsidered(passed []discovery.Considered) considered {
	c := make(considered)
	for _, p := range passed {
		why, ok := ofDiscovery[p.Reason]
		if !ok {
			continue
		}
		detail := ""
		if p.Err != nil {
			detail = plain(p.Err.Error())
		}
		c[p.Peer] = verdict{why, detail}
	}
	return c
}

// outdated records the peers whose connection was closed because they run another protocol version.
// A search would only find them unreachable.
func (c considered) outdated(peers []p2ppeer.ID) {
	for _, p := range peers {
		c[p] = verdict{job.Versions, ""}
	}
}

// with returns c with the outcomes of a reservation. Peers that granted slots are removed. An
// outdated peer stays outdated, since that explains why it is unreachable.
func (c considered) with(short *reservation.ShortageError) considered {
	out := maps.Clone(c)
	for _, o := range short.Outcomes {
		why := ofReservation[o.Reason]
		switch {
		case o.Slots > 0:
			delete(out, o.Peer)
		case o.Reason == 0, why == job.Unreachable && out[o.Peer].reason == job.Versions:
		default:
			out[o.Peer] = verdict{why, o.Reason.String()}
		}
	}
	return out
}

// maxPassed limits the peers that a Shortage lists, and so the length of its JSON.
const maxPassed = 256

// summarize returns a Shortage that summarizes c.
func (c considered) summarize(wanted, available int) *job.Shortage {
	s := &job.Shortage{Wanted: wanted, Available: available, Tallies: []job.Tally{}, Peers: []job.Passed{}}
	for _, r := range job.Reasons() {
		n := 0
		for _, id := range slices.Sorted(maps.Keys(c)) {
			if v := c[id]; v.reason == r {
				n++
				if len(s.Peers) < maxPassed {
					s.Peers = append(s.Peers, job.Passed{Peer: id.String(), Reason: v.reason, Detail: v.detail})
				}
			}
		}
		if n > 0 {
			s.Tallies = append(s.Tallies, job.Tally{Reason: r, Peers: n})
		}
	}
	return s
}

// shortage returns the result of a job that did not get enough slots, with a hint.
func (c considered) shortage(req Request, err error) *job.Result {
	short, ok := errors.AsType[*reservation.ShortageError](err)
	if !ok {
		return &job.Result{Status: job.StatusShortage, Message: fmt.Sprintf("no slots: %v", err), Hint: hintMorePeers}
	}
	text := fmt.Sprintf("found %d of the %s needed (-n %d -r %d) within %v",
		short.FoundSlots, english.Plural(req.N*req.R, "slot", ""), req.N, req.R, req.Wait)
	if short.FoundPeers > 0 && short.FoundPeers < req.R {
		text = fmt.Sprintf("found slots on %s within %v: the %d replicas of a rank (-r) must be on different machines",
			english.Plural(short.FoundPeers, "peer", ""), req.Wait, req.R)
	}
	told := c.summarize(req.N*req.R, short.FoundSlots)
	if len(told.Tallies) > 0 {
		text += "; passed over: " + counts(told)
	}
	return &job.Result{Status: job.StatusShortage, Message: text, Hint: hint(told, c.enoughAsModule(short)), Shortage: told}
}

// enoughAsModule reports whether the job could run as a WebAssembly module. It adds the slots of
// peers that accept only modules, free or not, to those that were found.
func (c considered) enoughAsModule(short *reservation.ShortageError) bool {
	slots, any := short.FoundSlots, false
	for _, o := range short.Outcomes {
		if c[o.Peer].reason == job.WasmOnly {
			slots += o.Offers
			any = true
		}
	}
	return any && slots >= short.NeededSlots()
}

// hint returns a hint for the user: a module if that suffices, otherwise the one thing that all
// peers lack.
func hint(s *job.Shortage, module bool) string {
	if module {
		return "give a Go package or a WebAssembly module as PROGRAM (--as wasm), or have owners allow you; or " + hintMorePeers
	}
	if len(s.Tallies) != 1 || s.Available > 0 {
		return hintMorePeers
	}
	switch s.Tallies[0].Reason {
	case job.Platforms:
		return "no peer found matches the platform of the program, --os or --arch; found only " + details(s)
	case job.TooSmall:
		return "no peer found has that much memory per slot: lower --min-memory, or boot peers with more memory or fewer --slots"
	case job.NotChosen:
		return "--peer, --not-peer or --only-mine exclude all peers found: name other peers, or start the named ones"
	case job.Versions:
		return "all peers found use another protocol version: upgrade p2prun or the peers, whichever is older"
	}
	return hintMorePeers
}

// details lists the details of the first few peers, each text once.
func details(s *job.Shortage) string {
	var texts []string
	for _, p := range s.Peers {
		if len(texts) < 4 && !slices.Contains(texts, p.Detail) {
			texts = append(texts, p.Detail)
		}
	}
	return strings.Join(texts, ", ")
}

const hintMorePeers = "start more peers with p2pboot, wait longer with -w, or lower -n or -r"

// counts returns a list such as "3 busy, 1 no answer", the most frequent reason first.
func counts(s *job.Shortage) string {
	sorted := slices.Clone(s.Tallies)
	slices.SortStableFunc(sorted, func(a, b job.Tally) int { return cmp.Compare(b.Peers, a.Peers) })
	var parts []string
	for _, t := range sorted {
		parts = append(parts, fmt.Sprintf("%d %s", t.Peers, t.Reason))
	}
	return strings.Join(parts, ", ")
}

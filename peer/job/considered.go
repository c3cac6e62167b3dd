package job

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A Reason is the short reason why a peer does not take part in a job.
type Reason string

// The reasons, in the order in which they are listed.
const (
	Busy         Reason = "busy"
	Denied       Reason = "denied"
	WasmOnly     Reason = "wasm only"
	Unconfined   Reason = "unconfined"
	Paused       Reason = "paused"
	NoDisk       Reason = "no disk"
	Versions     Reason = "version"
	Platforms    Reason = "other platform"
	TooSmall     Reason = "too small"
	NotChosen    Reason = "not chosen"
	Unreachable  Reason = "unreachable"
	NoAnswer     Reason = "no answer"
	Leaving      Reason = "leaving"
	HoldEnded    Reason = "hold ended"
	Unfit        Reason = "could not run it"
	OtherNetwork Reason = "other network"
	SameMachine  Reason = "same machine"
	Nonsense     Reason = "bad offer"
)

// meanings explains each reason in a sentence.
var meanings = []struct {
	Reason
	text string
}{
	{Busy, "no slot is free, or no further job is let in"},
	{Denied, "its owner does not admit you"},
	{WasmOnly, "its owner takes no native program of yours"},
	{Unconfined, "cannot confine programs as its owner wants"},
	{Paused, "its owner needs it now"},
	{NoDisk, "has too little free disk for a job"},
	{Versions, "speaks another version: renew the older one"},
	{Platforms, "no program for its system, or not asked for"},
	{TooSmall, "has less memory for a slot than --min-memory"},
	{NotChosen, "left out by --peer, --not-peer, --only-mine"},
	{Unreachable, "no connection to it"},
	{NoAnswer, "connected, but did not answer in time"},
	{Leaving, "its owner takes it back"},
	{HoldEnded, "its slots were held too long before use"},
	{Unfit, "could not stage or start the job"},
	{OtherNetwork, "belongs to another network"},
	{SameMachine, "another peer of its machine takes part"},
	{Nonsense, "its offer is wrong, or its clock"},
}

// Meaning returns the explanation of r.
func (r Reason) Meaning() string {
	for _, m := range meanings {
		if m.Reason == r {
			return m.text
		}
	}
	return ""
}

// The reasons of discovery and reservation that are reported to the user. Peers without offers are
// left out: they are submitters like this one.
var (
	ofDiscovery = map[discovery.Reason]Reason{
		discovery.Full: Busy, discovery.TooSmall: TooSmall, discovery.OtherPlatform: Platforms,
		discovery.NotChosen: NotChosen, discovery.OtherVersion: Versions, discovery.OtherNetwork: OtherNetwork,
		discovery.Silent: NoAnswer, discovery.Unreachable: Unreachable,
		discovery.Expired: Nonsense, discovery.BadOffer: Nonsense,
	}
	ofReservation = map[reservation.Reason]Reason{
		reservation.Busy: Busy, reservation.MaxJobs: Busy, reservation.Denied: Denied,
		reservation.WasmOnly: WasmOnly, reservation.Unconfined: Unconfined, reservation.Paused: Paused, reservation.NoDisk: NoDisk,
		reservation.Draining: Leaving, reservation.Version: Versions, reservation.UnknownKey: HoldEnded,
		reservation.Malformed: Nonsense, reservation.SameMachine: SameMachine, reservation.Unreachable: Unreachable, reservation.Silent: NoAnswer,
	}
)

// considered records the verdict on every peer that was considered for the job.
type considered map[p2ppeer.ID]verdict

// A verdict is the reason why a peer does not take part, with details.
type verdict struct {
	reason Reason
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
		c[p] = verdict{Versions, ""}
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
		case o.Reason == 0, why == Unreachable && out[o.Peer].reason == Versions:
		default:
			out[o.Peer] = verdict{why, o.Reason.String()}
		}
	}
	return out
}

// A Shortage describes why a job cannot start.
type Shortage struct {
	Wanted    int      `json:"wanted"`    // slots needed
	Available int      `json:"available"` // slots available at once
	Tallies   []Tally  `json:"reasons"`   // numbers of peers that gave no slot
	Peers     []Passed `json:"peers"`     // these peers; the first maxPassed of them

	module bool // the slots would suffice for a WebAssembly module
}

// A Tally is the number of peers with one reason.
type Tally struct {
	Reason Reason `json:"reason"`
	Peers  int    `json:"peers"`
}

// Passed is a peer that does not take part in a job.
type Passed struct {
	Peer   string `json:"peer"` // ID
	Reason Reason `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

// maxPassed limits the peers that a Shortage lists, and so the length of its JSON.
const maxPassed = 256

// tell returns a Shortage that summarizes c.
func (c considered) tell(wanted, available int) *Shortage {
	s := &Shortage{Wanted: wanted, Available: available, Tallies: []Tally{}, Peers: []Passed{}}
	for _, m := range meanings {
		n := 0
		for _, id := range slices.Sorted(maps.Keys(c)) {
			if v := c[id]; v.reason == m.Reason {
				n++
				if len(s.Peers) < maxPassed {
					s.Peers = append(s.Peers, Passed{id.String(), v.reason, v.detail})
				}
			}
		}
		if n > 0 {
			s.Tallies = append(s.Tallies, Tally{m.Reason, n})
		}
	}
	return s
}

// shortage returns the result of a job that did not get enough slots, with a hint.
func (j *run) shortage(c considered, err error) *Result {
	short, ok := errors.AsType[*reservation.ShortageError](err)
	if !ok {
		return &Result{Status: StatusShortage, Message: fmt.Sprintf("no slots: %v", err), Hint: hintMorePeers}
	}
	text := fmt.Sprintf("found %d of the %d slots needed (-n %d -r %d) within %v",
		short.FoundSlots, j.req.N*j.req.R, j.req.N, j.req.R, j.req.Wait)
	if short.FoundPeers > 0 && short.FoundPeers < j.req.R {
		text = fmt.Sprintf("found slots on %d peers within %v: the %d replicas of a rank (-r) must be on different machines",
			short.FoundPeers, j.req.Wait, j.req.R)
	}
	told := c.tell(j.req.N*j.req.R, short.FoundSlots)
	told.module = c.enoughAsModule(short)
	if len(told.Tallies) > 0 {
		text += "; passed over: " + told.counts()
	}
	return &Result{Status: StatusShortage, Message: text, Hint: told.hint(), Shortage: told}
}

// enoughAsModule reports whether the job could run as a WebAssembly module. It adds the slots of
// peers that accept only modules, free or not, to those that were found.
func (c considered) enoughAsModule(short *reservation.ShortageError) bool {
	slots, any := short.FoundSlots, false
	for _, o := range short.Outcomes {
		if c[o.Peer].reason == WasmOnly {
			slots += o.Offers
			any = true
		}
	}
	return any && slots >= short.NeededSlots()
}

// hint returns a hint for the user: a module if that suffices, otherwise the one thing that all
// peers lack.
func (s *Shortage) hint() string {
	if s.module {
		return "give a Go package or a WebAssembly module as PROGRAM (--as wasm), or have owners allow you; or " + hintMorePeers
	}
	if len(s.Tallies) != 1 || s.Available > 0 {
		return hintMorePeers
	}
	switch s.Tallies[0].Reason {
	case Platforms:
		return "no peer that was found has a system and processor that the program is for, or that --os and --arch ask for; there is " + s.details()
	case TooSmall:
		return "no peer that was found has so much memory for a slot: lower --min-memory, or boot peers with more memory or fewer --slots"
	case NotChosen:
		return "no peer that was found is one that --peer, --not-peer or --only-mine leave: name others, or boot those"
	case Versions:
		return "all peers that were found speak another version: renew what is older, this p2prun or those"
	}
	return hintMorePeers
}

// details lists the details of the first few peers, each text once.
func (s *Shortage) details() string {
	var texts []string
	for _, p := range s.Peers {
		if len(texts) < 4 && !slices.Contains(texts, p.Detail) {
			texts = append(texts, p.Detail)
		}
	}
	return strings.Join(texts, ", ")
}

const hintMorePeers = "boot more peers with p2pboot, wait longer with -w, or lower -n or -r"

// counts returns a list such as "3 busy, 1 no answer", the most frequent reason first.
func (s *Shortage) counts() string {
	sorted := slices.Clone(s.Tallies)
	slices.SortStableFunc(sorted, func(a, b Tally) int { return cmp.Compare(b.Peers, a.Peers) })
	var parts []string
	for _, t := range sorted {
		parts = append(parts, fmt.Sprintf("%d %s", t.Peers, t.Reason))
	}
	return strings.Join(parts, ", ")
}

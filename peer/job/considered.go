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

// A Reason says in a word or two why a peer does not take part in a job.
type Reason string

// The reasons, in the order in which a table lists them.
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

// meanings are the reasons in sentences.
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

// Meaning says what r means.
func (r Reason) Meaning() string {
	for _, m := range meanings {
		if m.Reason == r {
			return m.text
		}
	}
	return ""
}

// Of discovery and of reservation, the reasons that the user is told of. Peers that offer
// nothing are submitters like this one.
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

// considered is what was found out about every peer that was thought of.
type considered map[p2ppeer.ID]verdict

// A verdict is why a peer does not take part, with the particulars.
type verdict struct {
	reason Reason
	detail string
}

// newConsidered takes the peers that discovery has passed over.
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

// outdated notes the peers to which the connection was cut since they speak another version: those
// can only be found out of reach.
func (c considered) outdated(peers []p2ppeer.ID) {
	for _, p := range peers {
		c[p] = verdict{Versions, ""}
	}
}

// with adds what those said that were asked for slots. Who gave some is passed over no more; and
// since the connection to a peer of another version is cut, that it is unreachable says less.
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

// A Shortage says why a job cannot start.
type Shortage struct {
	Wanted    int      `json:"wanted"`    // slots
	Available int      `json:"available"` // of them, at once
	Tallies   []Tally  `json:"reasons"`   // peers that gave nothing
	Peers     []Passed `json:"peers"`     // these one by one; the first maxPassed of them

	module bool // there would be enough slots for a module
}

// A Tally is how many peers there are of one reason.
type Tally struct {
	Reason Reason `json:"reason"`
	Peers  int    `json:"peers"`
}

// Passed is a peer that does not take part.
type Passed struct {
	Peer   string `json:"peer"` // ID
	Reason Reason `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

// maxPassed bounds the peers that are named, and with them a line of JSON.
const maxPassed = 256

// tell sums up.
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

// shortage says that there are not enough slots, and what could help.
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

// enoughAsModule reports whether the job could run as a module, if the slots of peers that accept only modules,
// free or not, are added to those that were found.
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

// hint says what could help: first a module, if that suffices; otherwise the one thing that all peers lack.
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

// details lists what is known of the peers one by one, each text once, and the first few.
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

// counts writes "3 busy, 1 no answer", the most frequent first.
func (s *Shortage) counts() string {
	sorted := slices.Clone(s.Tallies)
	slices.SortStableFunc(sorted, func(a, b Tally) int { return cmp.Compare(b.Peers, a.Peers) })
	var parts []string
	for _, t := range sorted {
		parts = append(parts, fmt.Sprintf("%d %s", t.Peers, t.Reason))
	}
	return strings.Join(parts, ", ")
}

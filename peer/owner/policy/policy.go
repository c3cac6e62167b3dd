package policy

import (
	"fmt"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

// A Class is a set of submitters to which the same rule applies.
type Class string

// The classes, in the order in which they are tried.
const (
	Mine     Class = "mine"     // this peer's own jobs
	Allowed  Class = "allowed"  // listed by the owner
	Members  Class = "members"  // members of the private network that this peer is in
	Everyone Class = "everyone" // all others
)

// Classes lists all classes, in that order.
var Classes = []Class{Mine, Allowed, Members, Everyone}

// A Kind is a kind of program, or None. A rule names the most powerful kind that it permits.
type Kind string

// The kinds, as named in offers and requests, by increasing trust.
const (
	None   Kind = "none"
	Wasm   Kind = "wasm"
	Native Kind = "native"
)

// A Rule states what the submitters of a class may run.
type Rule struct {
	Kind  Kind // Native includes Wasm
	Slots int  // slots of the class at once, or 0 for no limit
	// Limits are the limits of each process of the class, where they are lower than the owner's limits for
	// all processes.
	Limits limits.Limits
}

// A Policy holds the owner's decisions.
type Policy struct {
	Self    p2ppeer.ID
	Private bool // this peer's network admits only members
	Allow   []p2ppeer.ID
	Deny    []p2ppeer.ID
	Rules   map[Class]Rule // as returned by ParseRules
	Quiet   Hours
	// Unconfined accepts native programs of members and everyone even if the sandbox is incomplete.
	Unconfined bool
}

// A Machine is the current state of the machine.
type Machine struct {
	Confined  bool // the sandbox for native programs is complete
	Suspended bool // the owner needs the machine, see package presence
	NoDisk    bool // less than LeastDisk is free
	Now       time.Time
}

// LeastDisk is the free disk space that a job of another user requires, in bytes. It is for the job's
// files, the output of its processes, and the journal.
const LeastDisk = 64 << 20

// A Request asks whether a submitter may run a job on this machine.
type Request struct {
	Submitter p2ppeer.ID
	Kinds     []Kind // kinds of the job's programs for this machine; empty means Native
}

// A Refusal is the reason for a refusal, or empty if the request is accepted.
type Refusal string

// The refusals.
const (
	Denied     Refusal = "denied"     // nothing from this submitter
	WasmOnly   Refusal = "wasm only"  // no native programs of this submitter
	Unconfined Refusal = "unconfined" // a native program could not be sandboxed completely
	Paused     Refusal = "paused"     // not at this time
	NoDisk     Refusal = "no disk"    // not before more disk space is free
)

// A Decision is the result of a request.
type Decision struct {
	Class   Class
	Refused Refusal
	Kind    Kind          // highest accepted kind of the job's programs; None if Refused
	Slots   int           // slots of the class at once, or 0 for no limit
	Limits  limits.Limits // limits of each process, in addition to those of all classes
}

// classOf returns the class of a submitter. It ignores Deny.
func (p Policy) classOf(submitter p2ppeer.ID) Class {
	switch {
	case submitter == p.Self:
		return Mine
	case slices.Contains(p.Allow, submitter):
		return Allowed
	case p.Private:
		return Members
	}
	return Everyone
}

// Decide judges a request.
func (p Policy) Decide(m Machine, q Request) Decision {
	class := p.classOf(q.Submitter)
	d := p.judge(class, m, q.Kinds)
	if slices.Contains(p.Deny, q.Submitter) {
		d.Kind, d.Refused = None, Denied
	}
	return d
}

// judge judges a request of a class. It ignores Deny.
func (p Policy) judge(class Class, m Machine, asked []Kind) Decision {
	rule := p.Rules[class]
	d := Decision{Class: class, Kind: None, Slots: rule.Slots, Limits: rule.Limits}
	if len(asked) == 0 {
		asked = []Kind{Native}
	}
	native, wasm := slices.Contains(asked, Native), slices.Contains(asked, Wasm)
	walled := m.Confined || p.Unconfined || class == Mine || class == Allowed
	switch {
	case rule.Kind != Wasm && rule.Kind != Native:
		d.Refused = Denied
	case class != Mine && (m.Suspended || p.Quiet.Contain(m.Now)):
		d.Refused = Paused
	case class != Mine && m.NoDisk:
		d.Refused = NoDisk
	case rule.Kind == Native && native && walled:
		d.Kind = Native
	case wasm:
		d.Kind = Wasm
	case rule.Kind == Native && native:
		d.Refused = Unconfined
	default:
		d.Refused = WasmOnly
	}
	return d
}

// Announced returns the kinds that are accepted from an unknown submitter, for the peer's offer. It ignores
// suspensions, which are short.
func (p Policy) Announced(confined bool) (kinds []Kind) {
	return p.accepted(p.classOf(""), confined)
}

// accepted returns the kinds that are accepted from a class while jobs are not suspended.
func (p Policy) accepted(class Class, confined bool) []Kind {
	p.Quiet = nil
	kinds := []Kind{} // a list in JSON even when it is empty
	for _, kind := range []Kind{Wasm, Native} {
		if p.judge(class, Machine{Confined: confined}, []Kind{kind}).Refused == "" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Terms are the conditions for a class on a machine.
type Terms struct {
	Class  Class         `json:"class"`
	Kinds  []Kind        `json:"kinds"`           // accepted kinds of programs while jobs are not suspended
	Slots  int           `json:"slots,omitempty"` // slots of the class at once, or 0 for no limit
	Limits limits.Limits `json:"limits"`          // limits of each process, where lower than those of all classes
}

// Each returns the terms as text, one entry each.
func (t Terms) Each() (all []string) {
	if len(t.Kinds) == 0 {
		return []string{"nothing"}
	}
	for _, kind := range t.Kinds {
		all = append(all, string(kind))
	}
	if t.Slots > 0 {
		all = append(all, fmt.Sprintf("slots %d", t.Slots))
	}
	return append(all, t.Limits.Each()...)
}

// Terms returns the terms of each class that can have submitters.
func (p Policy) Terms(confined bool) (all []Terms) {
	for _, class := range Classes {
		switch {
		case class == Allowed && len(p.Allow) == 0, class == Members && !p.Private, class == Everyone && p.Private:
			continue
		}
		rule := p.Rules[class]
		all = append(all, Terms{class, p.accepted(class, confined), rule.Slots, rule.Limits})
	}
	return all
}

// Limits returns the limits of the classes that may run programs.
func (p Policy) Limits() (all []limits.Limits) {
	for _, rule := range p.Rules {
		if rule.Kind == Native || rule.Kind == Wasm {
			all = append(all, rule.Limits)
		}
	}
	return all
}

// Admits reports whether any program of a submitter is ever accepted.
func (p Policy) Admits(submitter p2ppeer.ID) bool {
	rule := p.Rules[p.classOf(submitter)]
	return !slices.Contains(p.Deny, submitter) && (rule.Kind == Wasm || rule.Kind == Native)
}

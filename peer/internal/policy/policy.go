package policy

import (
	"fmt"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
)

// A Class is a kind of submitters.
type Class string

// The classes, in the order in which they are looked at.
const (
	Mine     Class = "mine"     // this peer's own jobs
	Allowed  Class = "allowed"  // listed by the owner
	Members  Class = "members"  // of the private network that this peer is in
	Everyone Class = "everyone" // else
)

// Classes are all of them, in that order.
var Classes = []Class{Mine, Allowed, Members, Everyone}

// A Kind is a kind of programs.
type Kind string

// The kinds, as offers and requests name them, from the least trusted with to the most.
const (
	None   Kind = "none"
	Wasm   Kind = "wasm"
	Native Kind = "native"
)

// A Rule is what a class may do.
type Rule struct {
	Kind  Kind // Native: wasm too
	Slots int  // of the class at once; 0: as many as there are
	// Limits are what each process of the class may have, if that is less than what the owner
	// grants everybody.
	Limits limits.Limits
}

// A Policy is what the owner has decided.
type Policy struct {
	Self    p2ppeer.ID
	Private bool // this peer's network admits only members
	Allow   []p2ppeer.ID
	Deny    []p2ppeer.ID
	Rules   map[Class]Rule // as ParseRules returns them
	Quiet   Hours
	// Unconfined has native programs of members and everyone accepted where a wall is missing.
	Unconfined bool
}

// A Machine is what holds here now.
type Machine struct {
	Confined bool // every wall around a native program stands
	Paused   bool // the owner needs the machine, see package presence
	NoDisk   bool // too little disk is free for any job
	Now      time.Time
}

// A Request is what a submitter asks for.
type Request struct {
	Submitter p2ppeer.ID
	Kinds     []Kind // of the job's programs for this machine; none is Native
}

// A Refusal says why nothing is accepted; empty: something is.
type Refusal string

// The refusals.
const (
	Denied     Refusal = "denied"     // not from this submitter
	WasmOnly   Refusal = "wasm only"  // no native program of this submitter
	Unconfined Refusal = "unconfined" // a native program would be, and must not
	Paused     Refusal = "paused"     // not now
	NoDisk     Refusal = "no disk"    // not until there is more room
)

// A Decision is what comes of a request.
type Decision struct {
	Class   Class
	Refused Refusal
	Kind    Kind          // the best that the job has of what is accepted; None when Refused
	Slots   int           // of the class at once; 0: as many as there are
	Limits  limits.Limits // of each process, beside those for everybody
}

// classOf returns what a submitter is. It says nothing of Deny.
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

// judge judges what somebody of a class asks for. It says nothing of Deny.
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
	case class != Mine && (m.Paused || p.Quiet.Contain(m.Now)):
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

// Announced returns the kinds that are accepted of a submitter of whom nothing is known: what an
// offer says, to all alike. Pauses are left out: they are over before long.
func (p Policy) Announced(confined bool) (kinds []Kind) {
	return p.accepted(p.classOf(""), confined)
}

// accepted returns the kinds that are accepted of a class when nothing pauses.
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

// Terms are what a class gets on a machine.
type Terms struct {
	Class  Class         `json:"class"`
	Kinds  []Kind        `json:"kinds"`           // of programs that are accepted, if nothing pauses
	Slots  int           `json:"slots,omitempty"` // of the class at once; 0: as many as there are
	Limits limits.Limits `json:"limits"`          // of each process, if that is less than what everybody is granted
}

// Each returns them for people, each with what it is of.
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

// Terms returns what each class gets that somebody can be in.
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

// Limits returns those of the classes of which anything is accepted.
func (p Policy) Limits() (all []limits.Limits) {
	for _, rule := range p.Rules {
		if rule.Kind == Native || rule.Kind == Wasm {
			all = append(all, rule.Limits)
		}
	}
	return all
}

// Admits reports whether anything is ever accepted from a submitter.
func (p Policy) Admits(submitter p2ppeer.ID) bool {
	rule := p.Rules[p.classOf(submitter)]
	return !slices.Contains(p.Deny, submitter) && (rule.Kind == Wasm || rule.Kind == Native)
}

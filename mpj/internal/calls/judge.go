package calls

import (
	"fmt"
	"slices"
)

// A Kind is the respect in which two calls differ.
type Kind byte

// The kinds, in the order in which Judge checks them.
const (
	Nothing Kind = iota
	Ops
	Roots
	Validity // one rank rejects its arguments
	Types
	Places
	Operations
	Counts
	Arguments
	kinds
)

var names = [kinds]string{
	Nothing: "nothing", Ops: "call", Roots: "root", Validity: "validity", Types: "element type", Places: "use in place",
	Operations: "operation", Counts: "count", Arguments: "arguments",
}

// String returns a description of the kind.
func (k Kind) String() string {
	if k >= kinds {
		return fmt.Sprintf("Kind(%d)", byte(k))
	}
	return names[k]
}

// A Difference is the first difference between two ranks. Text names both ranks and their calls. The
// zero Difference means that the calls match.
type Difference struct {
	Kind Kind
	Text string
}

// Judge compares the calls of all ranks. name returns the name that Text uses for the rank at an
// index.
func Judge(all []Call, name func(i int) string) Difference {
	for _, c := range []struct {
		kind  Kind
		alike func(a, b Call) bool
	}{
		{Ops, func(a, b Call) bool { return a.Op == b.Op }},
		{Roots, func(a, b Call) bool { return a.Root == b.Root }},
		{Validity, func(a, b Call) bool { return (a.Invalid == "") == (b.Invalid == "") }},
		{Types, func(a, b Call) bool { return a.Type == b.Type }},
		{Places, func(a, b Call) bool { return a.Place == b.Place || a.Place == Either || b.Place == Either }},
		{Operations, func(a, b Call) bool { return a.Operation == b.Operation || a.Operation == "" || b.Operation == "" }},
		{Counts, func(a, b Call) bool { return a.Count == b.Count && slices.Equal(a.Counts, b.Counts) }},
		{Arguments, func(a, b Call) bool { return a.Alike == b.Alike || a.Abstains || b.Abstains }},
	} {
		if d := compare(all, name, c.kind, c.alike); d.Kind != Nothing {
			return d
		}
	}
	return pair(all, name)
}

// compare returns the first difference of a kind. A silent call matches every other call, so
// compare continues with the first call that is not silent.
func compare(all []Call, name func(int) string, kind Kind, alike func(a, b Call) bool) Difference {
	first := 0
	for j := 1; j < len(all); j++ {
		if alike(all[first], all[j]) {
			if silent(kind, all[first]) {
				first = j
			}
			continue
		}
		text := fmt.Sprintf("%s calls %v, %s calls %v", name(first), all[first], name(j), all[j])
		if kind == Validity {
			text += ": " + refusal(all[first], all[j])
		}
		return Difference{kind, text}
	}
	return Difference{}
}

// silent reports whether c matches any other call in this respect.
func silent(kind Kind, c Call) bool {
	return kind == Places && c.Place == Either || kind == Operations && c.Operation == "" || kind == Arguments && c.Abstains
}

// refusal returns the reason why one of two calls is rejected.
func refusal(a, b Call) string {
	if a.Invalid != "" {
		return "the first call is invalid: " + a.Invalid
	}
	return "the second call is invalid: " + b.Invalid
}

// An edge identifies the parts of two ranks that must match.
type edge struct{ from, to, tag int }

// pair matches the parts that ranks send with those that others expect.
func pair(all []Call, name func(int) string) Difference {
	sent := make(map[edge][]int)
	for i, c := range all {
		for _, p := range c.Out {
			e := edge{i, p.Rank, p.Tag}
			sent[e] = append(sent[e], p.Count)
		}
	}
	for j, c := range all {
		for _, p := range c.In {
			e := edge{p.Rank, j, p.Tag}
			from := sent[e]
			if len(from) == 0 || p.Rank < 0 || p.Rank >= len(all) {
				return Difference{Arguments, fmt.Sprintf("%s expects data from rank %d, which sends none: %v", name(j), p.Rank, c)}
			}
			if from[0] != p.Count {
				return Difference{Counts, fmt.Sprintf("%s sends %d where %s expects %d: %s calls %v, %s calls %v",
					name(p.Rank), from[0], name(j), p.Count, name(p.Rank), all[p.Rank], name(j), c)}
			}
			sent[e] = from[1:]
		}
	}
	return unexpected(all, name, sent)
}

// unexpected returns the first part sent to a rank that does not expect it.
func unexpected(all []Call, name func(int) string, sent map[edge][]int) Difference {
	for i, c := range all {
		for _, p := range c.Out {
			if len(sent[edge{i, p.Rank, p.Tag}]) > 0 {
				return Difference{Arguments, fmt.Sprintf("%s sends data to rank %d, which expects none: %v", name(i), p.Rank, c)}
			}
		}
	}
	return Difference{}
}

package calls

import (
	"fmt"
	"strings"
)

// None is the root of a call without a root, and the count of one in which ranks
// may give different counts.
const None = -1

// A Call is what one rank says of a collective that it calls.
type Call struct {
	Op    string // the function
	Where string `json:",omitempty"` // file and line of the caller

	Root  int
	Type  string `json:",omitempty"` // of an element
	Count int    // elements that every rank gives
	// Counts is Count where there is one for each rank: the same list at all.
	Counts []int `json:",omitempty"`
	// Operation is the name of the function, or "" when it has none.
	Operation string `json:",omitempty"`
	Place     Place  `json:",omitempty"`
	// Alike is other arguments that all ranks give alike, in words, and Own those
	// that need not be.
	Alike string `json:",omitempty"`
	Own   string `json:",omitempty"`
	// Out and In are what this rank sends and receives.
	Out []Part `json:",omitempty"`
	In  []Part `json:",omitempty"`
	// Invalid says why this rank refuses its own arguments, or is empty.
	Invalid string `json:",omitempty"`
}

// A Place says whether what a rank gives is where its result goes.
type Place byte

// The places. Of nothing it cannot be told.
const (
	Either Place = iota
	InPlace
	Apart
)

// A Part goes along one edge: to or from a rank. Edges between two ranks are told
// apart by their tag, or by their order where that is the same.
type Part struct{ Rank, Tag, Count int }

// String returns the call with its arguments, and where it is.
func (c Call) String() string { return c.title() + c.place() }

// Within is String that says in which communicator.
func (c Call) Within(name string) string { return c.title() + " of " + name + c.place() }

func (c Call) title() string { return c.Op + "(" + strings.Join(c.arguments(), ", ") + ")" }

func (c Call) place() string {
	if c.Where == "" {
		return ""
	}
	return " at " + c.Where
}

// arguments returns what is known of them, in words.
func (c Call) arguments() []string {
	var all []string
	add := func(wanted bool, format string, args ...any) {
		if wanted {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(c.Count != None, "%d %s", c.Count, c.Type)
	add(c.Count == None && c.Type != "", "%s", c.Type)
	add(c.Counts != nil, "counts %v", short(c.Counts))
	add(len(c.Out) > 0, "sends %s", counts(c.Out))
	add(len(c.In) > 0, "receives %s", counts(c.In))
	add(c.Operation != "", "%s", c.Operation)
	add(c.Place == InPlace, "in place")
	add(c.Root != None, "root %d", c.Root)
	add(c.Alike != "", "%s", cut(c.Alike))
	add(c.Own != "", "%s", cut(c.Own))
	return all
}

// most bounds the counts that are shown of a list.
const most = 8

// longest bounds in bytes what is shown of other arguments.
const longest = 200

func cut(words string) string {
	if len(words) <= longest {
		return words
	}
	return strings.ToValidUTF8(words[:longest], "") + "..."
}

func short(list []int) string {
	if len(list) <= most {
		return fmt.Sprint(list)
	}
	return strings.TrimSuffix(fmt.Sprint(list[:most]), "]") + fmt.Sprintf(" and %d more]", len(list)-most)
}

// counts describes parts that are one for each rank in order by their counts,
// and others with their ranks.
func counts(parts []Part) string {
	var words []string
	for _, p := range parts[:min(len(parts), most)] {
		words = append(words, fmt.Sprintf("%d", p.Count))
	}
	if len(parts) > most {
		words = append(words, fmt.Sprintf("and %d more", len(parts)-most))
	}
	if len(parts) == 1 {
		return words[0]
	}
	return "[" + strings.Join(words, " ") + "]"
}

// OperationName returns the name for which the function called name is compared
// with others: "Sum" of mpj.Sum, and "" of a function literal. In a generic
// function, what is given as an operation is a literal to the compiler.
func OperationName(function string) string {
	name := function[strings.LastIndex(function, "/")+1:]
	name = strings.ReplaceAll(name, "[...]", "")
	if strings.Contains(name, ".func") {
		return ""
	}
	return strings.TrimPrefix(name, "mpj.")
}

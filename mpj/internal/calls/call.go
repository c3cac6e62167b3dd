package calls

import (
	"fmt"
	"strings"
)

// None is the root of a call that has no root, and the count of a call in which ranks may pass
// different counts.
const None = -1

// A Call describes a collective call of one rank.
type Call struct {
	Op    string // name of the function
	Where string `json:",omitempty"` // file and line of the caller

	Root  int
	Type  string `json:",omitempty"` // element type
	Count int    // elements that every rank passes
	// Counts is the list of counts, one for each rank, that must be the same at all ranks.
	Counts []int `json:",omitempty"`
	// Operation is the name of the reduction function, or "" if the function has no name.
	Operation string `json:",omitempty"`
	Place     Place  `json:",omitempty"`
	// Alike describes other arguments that must be the same at all ranks. Own describes arguments
	// that may differ.
	Alike string `json:",omitempty"`
	Own   string `json:",omitempty"`
	// Abstains reports that this rank takes part only in the agreement. Its Alike matches every other.
	Abstains bool `json:",omitempty"`
	// Out and In are the parts that this rank sends and receives.
	Out []Part `json:",omitempty"`
	In  []Part `json:",omitempty"`
	// Invalid is the reason why this rank rejects its own arguments, or empty.
	Invalid string `json:",omitempty"`
}

// A Place states whether a rank's contribution is stored in the result buffer.
type Place byte

// The places. Either stands for an empty contribution, which matches both.
const (
	Either Place = iota
	InPlace
	Apart
)

// A Part is data sent along one edge, to or from a rank. Several edges between two ranks are
// distinguished by their tag, or by their order if the tags are equal.
type Part struct{ Rank, Tag, Count int }

// String returns the call with its arguments and its location.
func (c Call) String() string { return c.title() + c.place() }

// Within is like String, but includes the name of the communicator.
func (c Call) Within(name string) string { return c.title() + " of " + name + c.place() }

func (c Call) title() string { return c.Op + "(" + strings.Join(c.arguments(), ", ") + ")" }

func (c Call) place() string {
	if c.Where == "" {
		return ""
	}
	return " at " + c.Where
}

// arguments describes the known arguments.
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

// most bounds the number of counts shown of a list.
const most = 8

// longest bounds the text shown of other arguments, in bytes.
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

// counts describes parts by their counts, in the order of the parts.
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

// OperationName returns the name by which a function is compared with others: "Sum" for mpj.Sum,
// and "" for a function literal. An operation passed within a generic function is a literal to the
// compiler.
func OperationName(function string) string {
	name := function[strings.LastIndex(function, "/")+1:]
	name = strings.ReplaceAll(name, "[...]", "")
	if strings.Contains(name, ".func") {
		return ""
	}
	return strings.TrimPrefix(name, "mpj.")
}

package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The tests. Tests of pairs run between ranks 0 and 1, 2 and 3, … at the same time.
const (
	Latency       = "latency"       // half the round trip of a message of Bytes
	Bandwidth     = "bandwidth"     // time of a message in a window of Window(Bytes), in one direction
	Bidirectional = "bidirectional" // like bandwidth, in both directions at once: time of one message in each direction
	Rate          = "rate"          // like bandwidth, for small messages
	OverlapSend   = "overlapsend"   // share of a send's time that computation hides
	OverlapRecv   = "overlaprecv"   // share of a receive's time that computation hides

	Barrier   = "barrier"
	Bcast     = "bcast"     // Bytes from a root that changes with each operation
	Reduce    = "reduce"    // Bytes of float64 to a root that changes likewise
	Allreduce = "allreduce" // Bytes of float64
	Allgather = "allgather" // Bytes from each rank
	Alltoall  = "alltoall"  // Bytes from each rank to each
)

// Pairs, Collectives and Kernels (the NAS programs) are the tests, in the order of the tables.
var (
	Pairs       = []string{Latency, Rate, Bandwidth, Bidirectional, OverlapSend, OverlapRecv}
	Collectives = []string{Barrier, Bcast, Reduce, Allreduce, Allgather, Alltoall}
	Kernels     = []string{"ep", "is", "cg", "mg", "ft"}
)

// An Item is one measurement: Count operations of a test with Bytes bytes.
type Item struct {
	Test  string
	Bytes int
	Count int
}

// String returns the item in the format of a contender's command line.
func (i Item) String() string { return fmt.Sprintf("%s:%d:%d", i.Test, i.Bytes, i.Count) }

// maxBytes and maxCount bound the values that Parse accepts.
const (
	maxBytes = 64 << 20
	maxCount = 1_000_000
)

// Parse parses the output of String.
func Parse(s string) (Item, error) {
	words := strings.Split(s, ":")
	if len(words) != 3 || !slices.Contains(slices.Concat(Pairs, Collectives, Kernels), words[0]) {
		return Item{}, fmt.Errorf("%q is not TEST:BYTES:COUNT", s)
	}
	bytes, err := strconv.Atoi(words[1])
	if err != nil || bytes < 0 || bytes > maxBytes || (bytes == 0) != slices.Contains(Kernels, words[0]) {
		return Item{}, fmt.Errorf("%q: want 1 to %d bytes, or 0 for a program", s, maxBytes)
	}
	count, err := strconv.Atoi(words[2])
	if err != nil || count < 1 || count > maxCount {
		return Item{}, fmt.Errorf("%q: want a count from 1 to %d", s, maxCount)
	}
	return Item{Test: words[0], Bytes: bytes, Count: count}, nil
}

// ParseAll parses a command line.
func ParseAll(words []string) ([]Item, error) {
	items := make([]Item, len(words))
	for i, w := range words {
		var err error
		if items[i], err = Parse(w); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// A Result is the line that a contender prints for an item.
type Result struct {
	Test    string  `json:"test"`
	Bytes   int     `json:"bytes"`
	Seconds float64 `json:"seconds"`
	// Overlap, for the overlap tests, is the part of the transfer's time that computation hid. The value 1 means
	// all of that time, and 0 none of it. A negative value means that both together took longer than one after
	// the other.
	Overlap *float64 `json:"overlap,omitempty"`
	// Allocs, where the contender can count them, is the number of heap allocations per message in both
	// processes.
	Allocs *float64 `json:"allocs,omitempty"`
	// Messages and Computing are the seconds of a kernel inside and outside of communication, each for the rank
	// with the greatest value.
	Messages  *float64 `json:"messages,omitempty"`
	Computing *float64 `json:"computing,omitempty"`
}

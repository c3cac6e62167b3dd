package collective

import (
	"fmt"
	"slices"
	"strings"
)

// An Operation is a kind of collective.
type Operation int32

// The operations.
const (
	Barrier Operation = iota
	Bcast
	Gather
	Scatter
	Allgather
	Alltoall
	Reduce
	Allreduce
	ReduceScatter
	Scan
	operations
)

var operationNames = [operations]string{
	"barrier", "bcast", "gather", "scatter", "allgather", "alltoall", "reduce", "allreduce", "reducescatter", "scan",
}

// An Algorithm is an implementation of an operation.
type Algorithm uint8

// The algorithms.
const (
	None              Algorithm = iota
	Linear                      // the root, or every rank, exchanges with all other ranks at once
	Binomial                    // a tree in which each rank sends to others as soon as it can
	Chain                       // from rank to rank, in segments
	Ring                        // each rank forwards to the right what it received from the left
	Dissemination               // with ranks at distances 1, 2, 4, ...
	RecursiveDoubling           // pairs at distances 1, 2, 4, ... swap everything
	RecursiveHalving            // pairs swap half of the remaining data
	Rabenseifner                // halving, then doubling
	Bruck                       // log n steps for any n, with rotated blocks
	Pairwise                    // every pair of ranks exchanges
	ScatterAllgather            // shares down a tree, then around the ring
	Levelled                    // within machines, within clusters, between clusters
	algorithms
)

var algorithmNames = [algorithms]string{
	"", "linear", "binomial", "chain", "ring", "dissemination", "recursive-doubling", "recursive-halving",
	"rabenseifner", "bruck", "pairwise", "scatter-allgather", "levels",
}

// usable lists the algorithms of each operation; the first is the fallback. Recursive doubling,
// recursive halving, and the doubling half of Rabenseifner's algorithm require a power of two. For
// other sizes, and for blocks of different lengths where an algorithm needs equal lengths, another
// algorithm is used.
var usable = [operations][]Algorithm{
	Barrier:       {Dissemination, Binomial, Levelled, Linear},
	Bcast:         {Binomial, ScatterAllgather, Chain, Levelled},
	Gather:        {Linear, Binomial, Levelled},
	Scatter:       {Linear, Binomial, Levelled},
	Allgather:     {Ring, RecursiveDoubling, Bruck, Levelled, Linear},
	Alltoall:      {Pairwise, Bruck, Levelled, Linear},
	Reduce:        {Binomial, Rabenseifner, Pairwise, Levelled},
	Allreduce:     {Binomial, RecursiveDoubling, Rabenseifner, Ring, Bruck, Levelled, Linear},
	ReduceScatter: {Pairwise, RecursiveHalving, Levelled, Binomial},
	Scan:          {RecursiveDoubling},
}

// Algorithms returns the algorithms of op.
func Algorithms(op Operation) []Algorithm { return usable[op] }

// String returns the name of a in P2PMPI_COLL.
func (a Algorithm) String() string { return algorithmNames[a] }

// String returns the name of o in P2PMPI_COLL.
func (o Operation) String() string { return operationNames[o] }

// A Forced contains the algorithms that the user selects instead of those in the table; None means
// no selection.
type Forced [operations]Algorithm

// Force returns the algorithms that s selects, as in "allreduce=ring,bcast=chain".
func Force(s string) (*Forced, error) {
	if s == "" {
		return nil, nil
	}
	f := new(Forced)
	for part := range strings.SplitSeq(s, ",") {
		name, algorithm, _ := strings.Cut(part, "=")
		op := slices.Index(operationNames[:], strings.TrimSpace(name))
		if op < 0 {
			return nil, fmt.Errorf("unknown collective %q: want one of %s", part, strings.Join(operationNames[:], ", "))
		}
		a := Algorithm(max(0, slices.Index(algorithmNames[:], strings.TrimSpace(algorithm))))
		if !slices.Contains(usable[op], a) {
			return nil, fmt.Errorf("unknown algorithm %q of %s: want one of %v", part, operationNames[op], usable[op])
		}
		f[op] = a
	}
	return f, nil
}

// choose returns the algorithm for an operation on the given number of bytes. If all members pass
// the same number, the choice is the same at all members and replicas.
func (t *Team) choose(op Operation, bytes int) Algorithm {
	if t.Forced != nil && t.Forced[op] != None && (t.Forced[op] != Levelled || t.Levels != nil) {
		return t.Forced[op]
	}
	if t.Levels != nil && bytes <= levelledUpTo[op] {
		return Levelled
	}
	for _, r := range table[op] {
		if bytes <= r.bytes && t.Size >= r.size {
			return r.use
		}
	}
	return usable[op][0]
}

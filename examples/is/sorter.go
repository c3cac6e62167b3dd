package main

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/examples/internal/npb"
	"github.com/p2pmpi/p2pmpi/mpj"
)

// A sorter is one rank's part of the sort.
type sorter struct {
	class class
	run   *npb.Run
	comm  *mpj.Comm
	shift int     // shift from a key to its bucket
	keys  []int32 // keys that this rank generated
	tests [testCount]int32

	// State of the last ranking.
	sizes, totals []int32 // numbers of keys per bucket, of this rank and of all ranks
	next          []int32 // scratch space, one element per bucket
	grouped       []int32 // this rank's keys by bucket
	sendCounts    []int
	recvCounts    []int
	received      []int32 // the keys of this rank's buckets
	low           int32   // least possible key in received
	lower         int     // number of keys of lower ranks
	below         []int32 // see rankKeys
}

// newSorter generates the keys of this rank and distributes the test keys to all ranks.
func newSorter(run *npb.Run, c class) (*sorter, error) {
	comm := run.World.Comm
	from, to := c.share(comm.Rank(), comm.Size())
	buckets := 1 << c.bucketsLog
	s := &sorter{
		class: c, run: run, comm: comm, shift: c.maxLog - c.bucketsLog,
		keys:  makeKeys(c, from, to),
		sizes: make([]int32, buckets), totals: make([]int32, buckets), next: make([]int32, buckets),
		grouped:    make([]int32, to-from),
		sendCounts: make([]int, comm.Size()),
		recvCounts: make([]int, comm.Size()),
	}
	for i, test := range c.tests {
		if from <= test.key && test.key < to {
			s.tests[i] = s.keys[test.key-from]
		}
	}
	return s, mpj.Allreduce(comm, s.tests[:], s.tests[:], mpj.Sum)
}

// rank ranks all keys; i is the number of this ranking, from 1.
func (s *sorter) rank(i int) error {
	if s.comm.Rank() == 0 { // NPB changes two keys in each ranking
		s.keys[i] = int32(i)
		s.keys[i+rankings] = int32(s.class.maxKey() - i)
	}
	clear(s.sizes)
	countBuckets(s.keys, s.sizes, s.shift)
	group(s.keys, s.grouped, s.sizes, s.next, s.shift)
	if err := s.run.Communicate(func() error {
		return mpj.Allreduce(s.comm, s.sizes, s.totals, mpj.Sum)
	}); err != nil {
		return err
	}
	s.assign(divide(s.totals, s.comm.Size()))
	if err := s.run.Communicate(s.exchange); err != nil {
		return err
	}
	rankKeys(s.received, s.below, s.low)
	return nil
}

// assign computes, from the ends of all ranks' runs of buckets, the number of keys for each rank and
// the range of keys of this rank.
func (s *sorter) assign(ends []int) {
	first := 0
	s.lower = 0
	for rank, end := range ends {
		s.sendCounts[rank] = sum(s.sizes[first:end])
		switch here := s.comm.Rank(); {
		case rank < here:
			s.lower += sum(s.totals[first:end])
		case rank == here:
			s.low = int32(first << s.shift)
			s.below = resize(s.below, (end-first)<<s.shift+1)
		}
		first = end
	}
}

// exchange sends every rank the keys of its buckets.
func (s *sorter) exchange() error {
	if err := mpj.Alltoall(s.comm, s.sendCounts, s.recvCounts); err != nil {
		return err
	}
	s.received = resize(s.received, sum(s.recvCounts))
	return mpj.Alltoallv(s.comm, s.grouped, s.sendCounts, nil, s.received, s.recvCounts, nil)
}

// checkTests returns the number of test keys of this rank whose rank in the i-th ranking is not the
// one that NPB expects.
func (s *sorter) checkTests(i int) (wrong int) {
	for k, test := range s.class.tests {
		at := int(s.tests[k] - s.low)
		if at < 0 || at >= len(s.below)-1 {
			continue // the key belongs to another rank
		}
		if s.lower+int(s.below[at]) != test.expected(i) {
			wrong++
		}
	}
	return wrong
}

// checkSorted sorts the keys by their ranks. It returns the number of keys that are smaller than
// their predecessor at this rank or a lower one, plus one if keys were lost.
func (s *sorter) checkSorted() (wrong int, err error) {
	sorted := make([]int32, len(s.received))
	next := append([]int32(nil), s.below...)
	for _, k := range s.received {
		sorted[next[k-s.low]] = k
		next[k-s.low]++
	}
	last := []int32{-1} // largest key of this and all lower ranks
	if len(sorted) > 0 {
		last[0] = sorted[len(sorted)-1]
	}
	highest := make([]int32, s.comm.Size())
	if err := mpj.Allgather(s.comm, last, highest); err != nil {
		return 0, fmt.Errorf("compare neighbouring keys: %w", err)
	}
	before := int32(-1)
	for _, k := range highest[:s.comm.Rank()] {
		before = max(before, k)
	}
	for _, k := range sorted {
		if k < before {
			wrong++
		}
		before = k
	}
	if s.comm.Rank() == s.comm.Size()-1 && s.lower+len(sorted) != s.class.total() {
		wrong++
	}
	return wrong, nil
}

// sum adds up numbers.
func sum[T int | int32](numbers []T) (total int) {
	for _, n := range numbers {
		total += int(n)
	}
	return total
}

// resize returns a slice of length n, in the memory of s if that is large enough.
func resize(s []int32, n int) []int32 {
	if cap(s) < n {
		return make([]int32, n, n+n/8) // the next ranking may need a little more
	}
	return s[:n]
}

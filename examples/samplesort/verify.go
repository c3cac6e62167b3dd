package main

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// A sum is an invariant of sorting: the number of lines and bytes, and a checksum that does not
// depend on the order of lines.
type sum struct{ lines, bytes, check uint64 }

// sumAll adds up the sums of all ranks' lines.
func sumAll(c *mpj.Comm, lines []line) (sum, error) {
	n := []uint64{uint64(len(lines)), 0, 0}
	hash := fnv.New64a()
	for _, l := range lines {
		hash.Reset()
		hash.Write(l.text)
		n[1] += uint64(len(l.text) + 1)
		n[2] += hash.Sum64()
	}
	err := mpj.Allreduce(c, n, n, mpj.Sum)
	return sum{n[0], n[1], n[2]}, err
}

// borderTag is the tag of the messages that send the greatest line to the next rank.
const borderTag = 2

// verify returns an error unless lines are in order at every rank, and from rank to rank.
func verify(c *mpj.Comm, o options, lines []line) error {
	order := func(a, b line) int { a.at, b.at = 0, 0; return o.compare(a, b) }
	if !slices.IsSortedFunc(lines, order) {
		return fmt.Errorf("%w: the lines of rank %d are not in order", errWrong, c.Rank())
	}
	// The greatest line so far is passed from rank to rank, also by ranks without lines.
	var before []line
	if c.Rank() > 0 {
		text, _, err := mpj.RecvValue[[]byte](c, c.Rank()-1, borderTag)
		if err != nil {
			return err
		}
		before = split(text, 0)
		if o.integers {
			if _, err := parseNumbers(before); err != nil {
				return err
			}
		}
	}
	if len(before) > 0 && len(lines) > 0 && order(before[0], lines[0]) > 0 {
		return fmt.Errorf("%w: the first line of rank %d should precede %.40q", errWrong, c.Rank(), before[0].text)
	}
	if len(lines) > 0 {
		before = lines[len(lines)-1:]
	}
	if c.Rank() == c.Size()-1 {
		return nil
	}
	return mpj.SendValue(c, join(before), c.Rank()+1, borderTag)
}

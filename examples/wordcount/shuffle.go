package main

import (
	"hash/fnv"
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// owner returns the rank that sums the counts of a word. The hash is the same in every process,
// unlike a hash of package maphash.
func owner(word string, ranks int) int {
	h := fnv.New32a()
	h.Write([]byte(word))
	return int(h.Sum32() % uint32(ranks))
}

// shuffle sends this rank's counts to the owners of the words. It returns the total counts of the
// words that this rank owns. In step k, every rank sends to the k-th rank after its own.
func shuffle(c *mpj.Comm, counted tally) (tally, error) {
	parts := make([][]entry, c.Size())
	for _, e := range counted.sorted(byWord) {
		to := owner(e.Word, c.Size())
		parts[to] = append(parts[to], e)
	}
	owned := make(tally)
	for _, e := range parts[c.Rank()] {
		owned.merge(e)
	}
	for k := 1; k < c.Size(); k++ {
		to, from := (c.Rank()+k)%c.Size(), (c.Rank()-k+c.Size())%c.Size()
		if err := sendEntries(c, parts[to], to, wordsTag); err != nil {
			return nil, err
		}
		parts[to] = nil
		if err := recvEntries(c, from, wordsTag, owned.merge); err != nil {
			return nil, err
		}
	}
	return owned, nil
}

// collect returns at rank 0 the first top entries of all ranks in the order byCount. owned must be
// in that order, and no word may be at two ranks.
func collect(c *mpj.Comm, owned []entry, top int) ([]entry, error) {
	owned = owned[:min(top, len(owned))]
	if c.Rank() != 0 {
		return nil, sendEntries(c, owned, 0, tableTag)
	}
	table := owned
	for rank := 1; rank < c.Size(); rank++ {
		err := recvEntries(c, rank, tableTag, func(e entry) { table = append(table, e) })
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(table, byCount)
	return table[:min(top, len(table))], nil
}

// entriesPerMessage keeps messages, and their backups, small.
const entriesPerMessage = 1 << 10

// sendEntries sends entries in several messages; an empty message marks the end.
func sendEntries(c *mpj.Comm, entries []entry, dest, tag int) error {
	for part := range slices.Chunk(entries, entriesPerMessage) {
		if err := mpj.SendValue(c, part, dest, tag); err != nil {
			return err
		}
	}
	return mpj.SendValue(c, []entry{}, dest, tag)
}

// recvEntries receives the messages of sendEntries and calls take with each entry.
func recvEntries(c *mpj.Comm, source, tag int, take func(entry)) error {
	for {
		part, _, err := mpj.RecvValue[[]entry](c, source, tag)
		if err != nil || len(part) == 0 {
			return err
		}
		for _, e := range part {
			take(e)
		}
	}
}

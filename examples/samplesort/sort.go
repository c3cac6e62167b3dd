package main

import (
	"slices"
	"sort"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// sortAll sorts the lines of all ranks. Afterwards each rank has a part of the lines, and all lines
// of a rank precede the lines of the next rank.
func sortAll(c *mpj.Comm, o options, lines []line) ([]line, error) {
	slices.SortFunc(lines, o.compare)
	if c.Size() == 1 {
		return lines, nil
	}
	splitters, err := o.split(c, lines)
	if err != nil {
		return nil, err
	}
	return o.exchange(c, lines, splitters)
}

// split divides sorted lines at the splitters: part i of the result contains the lines that are less
// than splitter i and not less than splitter i-1.
func (o options) split(c *mpj.Comm, lines []line) ([]line, error) {
	samples, err := gather(c, sample(lines, c.Size()*samplesPerPart))
	if err != nil {
		return nil, err
	}
	if o.integers {
		if _, err := parseNumbers(samples); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(samples, o.compare)
	return sample(samples, c.Size()-1), nil
}

// samplesPerPart is the number of samples that a rank takes for every part. More samples make the
// parts more even, and cost more to sort.
const samplesPerPart = 4

// sample returns count evenly spaced lines of the sorted lines, or all lines if there are at most
// count.
func sample(lines []line, count int) []line {
	if len(lines) <= count {
		return lines
	}
	samples := make([]line, count)
	for i := range samples {
		samples[i] = lines[(i+1)*len(lines)/(count+1)]
	}
	return samples
}

// gather returns the lines of all ranks at every rank. It uses one Allgatherv for the texts and
// another for the positions.
func gather(c *mpj.Comm, mine []line) ([]line, error) {
	places := make([]int64, len(mine))
	for i, l := range mine {
		places[i] = l.at
	}
	texts, err := allgather(c, join(mine))
	if err != nil {
		return nil, err
	}
	if places, err = allgather(c, places); err != nil {
		return nil, err
	}
	all := split(texts, 0)
	for i := range all {
		all[i].at = places[i]
	}
	return all, nil
}

// allgather is Allgatherv for ranks that do not know the counts of the other ranks.
func allgather[T mpj.Element](c *mpj.Comm, mine []T) ([]T, error) {
	counts := make([]int, c.Size())
	if err := mpj.Allgather(c, []int{len(mine)}, counts); err != nil {
		return nil, err
	}
	all := make([]T, total(counts))
	return all, mpj.Allgatherv(c, mine, all, counts, nil)
}

func total(counts []int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

// exchange sends every line to the rank of its part, and merges the received lines. The positions of
// lines need not be sent, because the part of a lower rank contains earlier lines of the file, and
// merge keeps the order of the parts.
func (o options) exchange(c *mpj.Comm, lines, splitters []line) ([]line, error) {
	sendCounts, recvCounts := make([]int, c.Size()), make([]int, c.Size())
	from := 0
	for rank := range sendCounts {
		to := len(lines)
		if rank < len(splitters) {
			to = sort.Search(len(lines), func(i int) bool { return o.compare(lines[i], splitters[rank]) >= 0 })
		}
		for _, l := range lines[from:to] {
			sendCounts[rank] += len(l.text) + 1
		}
		from = to
	}
	if err := mpj.Alltoall(c, sendCounts, recvCounts); err != nil {
		return nil, err
	}
	text := make([]byte, total(recvCounts))
	if err := mpj.Alltoallv(c, join(lines), sendCounts, nil, text, recvCounts, nil); err != nil {
		return nil, err
	}
	return o.mergeParts(text, recvCounts)
}

// mergeParts merges the lines of parts; part i has counts[i] bytes.
func (o options) mergeParts(text []byte, counts []int) ([]line, error) {
	parts := make([][]line, len(counts))
	at := 0
	for i, n := range counts {
		parts[i] = split(text[at:at+n], int64(at))
		at += n
		if o.integers {
			if _, err := parseNumbers(parts[i]); err != nil {
				return nil, err
			}
		}
	}
	return merge(parts, o.compare), nil
}

package collective

// A grid contains blocks of equal length in transit between ranks: one block from each source to
// each dest.
type grid struct {
	sources, dests []int // in order
	each           int
	b              []byte // ordered by source, then by dest
}

func newGrid(sources, dests []int, each int) grid {
	return grid{sources, dests, each, make([]byte, len(sources)*len(dests)*each)}
}

// at returns the block in a row and column.
func (g grid) at(row, column int) []byte {
	from := (row*len(g.dests) + column) * g.each
	return g.b[from : from+g.each]
}

// add copies the blocks that g and from have in common.
func (g grid) add(from grid) {
	inCommon(g.sources, from.sources, func(row, fromRow int) {
		inCommon(g.dests, from.dests, func(column, fromColumn int) {
			copy(g.at(row, column), from.at(fromRow, fromColumn))
		})
	})
}

// inCommon calls f with the positions of every value that the sorted slices a and b both contain.
func inCommon(a, b []int, f func(i, j int)) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			f(i, j)
			i++
			j++
		}
	}
}

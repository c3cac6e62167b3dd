package collective

// A Blocks divides a buffer among ranks. With Counts, rank i has Counts[i] elements of Unit bytes
// each, starting at element Displs[i]. Without Counts, all ranks have contiguous blocks of Each
// bytes.
type Blocks struct {
	Each           int
	Unit           int
	Counts, Displs []int
}

// Even returns blocks of each bytes.
func Even(each int) Blocks { return Blocks{Each: each} }

// of returns the block of rank i in buf.
func (b Blocks) of(buf []byte, i int) []byte {
	if b.Counts == nil {
		return buf[i*b.Each : (i+1)*b.Each]
	}
	from := b.Displs[i] * b.Unit
	return buf[from : from+b.Counts[i]*b.Unit]
}

// bounds returns the byte range of the blocks of ranks from..to-1, which must be contiguous.
func (b Blocks) bounds(from, to int) (int, int) {
	if b.Counts == nil {
		return from * b.Each, to * b.Each
	}
	return b.Displs[from] * b.Unit, (b.Displs[to-1] + b.Counts[to-1]) * b.Unit
}

// largest returns the size in bytes of the largest of n blocks.
func (b Blocks) largest(n int) int {
	if b.Counts == nil {
		return b.Each
	}
	most := 0
	for _, count := range b.Counts[:n] {
		most = max(most, count*b.Unit)
	}
	return most
}

// share returns the range of rank i's share of n elements: it begins at element i*n/size.
func share(n, size, i int) (from, to int) { return i * n / size, (i + 1) * n / size }

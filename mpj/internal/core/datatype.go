package core

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj/internal/layout"
)

// The constructors here measure strides and displacements in items of the old datatype. Those of
// package layout measure them in bytes.

// Vector returns count blocks of blocklength items of l each. stride is the distance between the
// starts of consecutive blocks, in items.
func Vector(count, blocklength, stride int, l *layout.Layout) (*layout.Layout, error) {
	step, err := extents(stride, l)
	if err != nil {
		return nil, err
	}
	return layout.Hvector(count, blocklength, step, l)
}

// Indexed returns blocks of blocklengths[i] items of l that begin at displacements[i], in items.
func Indexed(blocklengths, displacements []int, l *layout.Layout) (*layout.Layout, error) {
	bytes := make([]int, len(displacements))
	for i, d := range displacements {
		var err error
		if bytes[i], err = extents(d, l); err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
	}
	return layout.Hindexed(blocklengths, bytes, l)
}

// IndexedBlock is Indexed with blocks of equal length.
func IndexedBlock(blocklength int, displacements []int, l *layout.Layout) (*layout.Layout, error) {
	return Indexed(filled(len(displacements), blocklength), displacements, l)
}

// HindexedBlock is IndexedBlock with the displacements in bytes.
func HindexedBlock(blocklength int, displacements []int, l *layout.Layout) (*layout.Layout, error) {
	return layout.Hindexed(filled(len(displacements), blocklength), displacements, l)
}

// extents returns the length in bytes of n extents of l.
func extents(n int, l *layout.Layout) (int, error) {
	bytes := n * l.Extent()
	if l.Extent() != 0 && bytes/l.Extent() != n {
		return 0, fmt.Errorf("%d items of %d bytes", n, l.Extent())
	}
	return bytes, nil
}

func filled(n, value int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = value
	}
	return s
}

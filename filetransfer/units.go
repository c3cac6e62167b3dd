package filetransfer

import (
	"crypto/sha256"
	"encoding/binary"
)

// A unit is what a fetching peer asks one other for at once: a piece of a large
// content, or several small contents that stand together in the list of those
// that are wanted. All who want the same list number its units alike, so that a
// set of them is a bitset.
type unit struct {
	first, count int // contents: indices into the list
	piece        int // of the content, when that has several
}

const (
	// maxBatch bounds the contents of a unit.
	maxBatch = 256
	// maxUnits bounds the units of a list: the pieces whose values a manifest
	// has room for, and its small contents.
	maxUnits = MaxManifestBytes/chainBytes + MaxEntries
)

// unitsOf divides a list of contents.
func unitsOf(list []Want) (units []unit) {
	var open bool  // the last unit is of small contents,
	var size int64 // of so many bytes
	for i, w := range list {
		if n := pieces(w.Size); n > 1 {
			for piece := range n {
				units = append(units, unit{first: i, count: 1, piece: piece})
			}
			open = false
			continue
		}
		if last := len(units) - 1; open && size+w.Size <= PieceBytes && units[last].count < maxBatch {
			units[last].count++
			size += w.Size
			continue
		}
		units = append(units, unit{first: i, count: 1})
		open, size = true, w.Size
	}
	return units
}

// listID names a list of contents to others that want the same.
func listID(list []Want) Digest {
	h := sha256.New()
	for _, w := range list {
		h.Write(w.Digest[:])
		_ = binary.Write(h, binary.BigEndian, w.Size) // a hash never fails
	}
	return Digest(h.Sum(nil))
}

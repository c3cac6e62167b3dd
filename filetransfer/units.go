package filetransfer

import (
	"crypto/sha256"
	"encoding/binary"
)

// A unit is the amount of data that a fetching peer requests at once: a piece of a large content, or several
// small contents that are adjacent in the list of wanted contents. All peers that want the same list number
// its units alike, so that a set of units is a bitset.
type unit struct {
	first, count int // contents, as indices into the list
	piece        int // index of the piece, for a content of several pieces
}

const (
	// maxBatch bounds the contents of a unit.
	maxBatch = 256
	// maxUnits bounds the units of a list: as many pieces as a manifest has room to describe, plus its
	// small contents.
	maxUnits = maxManifestBytes/chainBytes + MaxEntries
)

func unitsOf(list []Want) (units []unit) {
	var open bool  // the last unit has room for small contents
	var size int64 // size of the last unit in bytes, if open
	for i, w := range list {
		if n := pieces(w.Size); n > 1 {
			for piece := range n {
				units = append(units, unit{first: i, count: 1, piece: piece})
			}
			open = false
			continue
		}
		if last := len(units) - 1; open && size+w.Size <= pieceSize && units[last].count < maxBatch {
			units[last].count++
			size += w.Size
			continue
		}
		units = append(units, unit{first: i, count: 1})
		open, size = true, w.Size
	}
	return units
}

// listID returns the identifier of a list of contents, which is equal at all peers that want the same
// list.
func listID(list []Want) Digest {
	h := sha256.New()
	for _, w := range list {
		h.Write(w.Digest[:])
		_ = binary.Write(h, binary.BigEndian, w.Size) // writing to a hash never fails
	}
	return Digest(h.Sum(nil))
}

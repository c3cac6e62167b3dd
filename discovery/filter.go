package discovery

import (
	"errors"
	"slices"

	"github.com/dustin/go-humanize"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A Filter says which peers are wanted. The zero value wants all of them.
type Filter struct {
	// MinMemory is the least memory of one slot, in bytes: that of the machine divided
	// among all its slots, since others may use the rest of them. A peer that does
	// not know its memory is too small.
	MinMemory uint64 `json:"minMemory,omitempty"`

	OS   string `json:"os,omitempty"`   // in Go's words; empty: any
	Arch string `json:"arch,omitempty"` // in Go's words; empty: any

	Only []p2ppeer.ID `json:"only,omitempty"` // the only peers wanted; none at all: everybody
	Not  []p2ppeer.ID `json:"not,omitempty"`  // peers that are not wanted, also of those in Only
}

var (
	errNotOnly = errors.New("it is not among the peers that were asked for")
	errNot     = errors.New("it was asked to be left out")
	errNoSlots = errors.New("it donates no slots")
)

// chosen returns nil if id may be asked, or why not.
func (f *Filter) chosen(id p2ppeer.ID) error {
	switch {
	case slices.Contains(f.Not, id):
		return errNot
	case len(f.Only) > 0 && !slices.Contains(f.Only, id):
		return errNotOnly
	}
	return nil
}

// suits returns nil if o has what is wanted, or what it lacks.
func (f *Filter) suits(o *Offer) *Refusal {
	if f.OS != "" && f.OS != o.OS || f.Arch != "" && f.Arch != o.Arch {
		return refuse(OtherPlatform, "%s/%s", o.OS, o.Arch)
	}
	if has := o.slotMemory(); has < f.MinMemory {
		return refuse(TooSmall, "%s of memory for each slot, %s wanted", humanize.IBytes(has), humanize.IBytes(f.MinMemory))
	}
	return nil
}

// slotMemory is what each of o's slots has of the memory, in bytes.
func (o *Offer) slotMemory() uint64 { return o.MemoryBytes / uint64(max(o.SlotsTotal, 1)) }

package discovery

import (
	"errors"
	"slices"

	"github.com/dustin/go-humanize"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A Filter selects peers. The zero value selects all of them.
type Filter struct {
	// MinMemory is the least memory of one slot, in bytes: the machine's memory divided by all its slots,
	// since other jobs may use the rest of them. A peer that does not know its memory is too small.
	MinMemory uint64 `json:"minMemory,omitempty"`

	OS   string `json:"os,omitempty"`   // GOOS name; empty means any
	Arch string `json:"arch,omitempty"` // GOARCH name; empty means any

	Only []p2ppeer.ID `json:"only,omitempty"` // the only peers wanted; empty means all
	Not  []p2ppeer.ID `json:"not,omitempty"`  // peers to exclude; overrides Only
}

var (
	errNotOnly = errors.New("it is not in --peer")
	errNot     = errors.New("it is in --not-peer")
	errNoSlots = errors.New("it donates no slots")
)

// selects returns nil if the peer id may be asked, or else the reason for excluding it.
func (f *Filter) selects(id p2ppeer.ID) error {
	switch {
	case slices.Contains(f.Not, id):
		return errNot
	case len(f.Only) > 0 && !slices.Contains(f.Only, id):
		return errNotOnly
	}
	return nil
}

// matches returns nil if o meets the requirements, or else the first requirement that o fails.
func (f *Filter) matches(o *Offer) *Refusal {
	if f.OS != "" && f.OS != o.OS || f.Arch != "" && f.Arch != o.Arch {
		return refuse(OtherPlatform, "%s/%s", o.OS, o.Arch)
	}
	if has := o.MemoryBytes / uint64(max(o.SlotsTotal, 1)); has < f.MinMemory {
		return refuse(TooSmall, "%s of memory for each slot, %s wanted", humanize.IBytes(has), humanize.IBytes(f.MinMemory))
	}
	return nil
}

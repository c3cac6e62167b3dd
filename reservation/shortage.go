package reservation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A ShortageError reports that an attempt found too few slots. It states how many slots the attempt found, and why
// the other candidates granted none. Another attempt, later or with other candidates, may succeed.
type ShortageError struct {
	Need       Need
	FoundSlots int            // granted slots; at most Need.N per peer count
	FoundPeers int            // peers that granted slots
	Considered int            // number of candidates
	Reasons    map[Reason]int // number of candidates that granted no slots, by reason
	Outcomes   []Outcome      // one per candidate
	Place      Place          // median place in the queues of the peers where the job waits
	Hopeless   bool           // the candidates would not suffice even if all slots of those that answer were free
}

// An Outcome is the result for one candidate: the Slots that it granted, or the Reason. If both are zero,
// the candidate was not asked, because others sufficed.
type Outcome struct {
	Peer   p2ppeer.ID
	Slots  int
	Offers int // slots that the job could use, free or not
	Reason Reason
}

// NeededSlots returns how many slots the job needs.
func (e *ShortageError) NeededSlots() int { return e.Need.N * e.Need.R }

// Unheard marks the candidates that did not answer as Unheard, for a caller that retries with them, and
// clears the mark of the others.
func (e *ShortageError) Unheard(candidates []Candidate) {
	unheard := make(map[p2ppeer.ID]bool)
	for _, o := range e.Outcomes {
		unheard[o.Peer] = o.Slots == 0 && (o.Reason == Silent || o.Reason == Unreachable)
	}
	for i := range candidates {
		candidates[i].Unheard = unheard[candidates[i].Peer]
	}
}

// Error returns, for instance, "found 5 of the 8 slots needed (n=4 r=2); 9 peers considered, 3 busy, 1
// silent".
func (e *ShortageError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "found %d of the %d slots needed (n=%d r=%d)", e.FoundSlots, e.NeededSlots(), e.Need.N, e.Need.R)
	if e.FoundPeers < e.Need.R {
		fmt.Fprintf(&b, " on %d of at least %s", e.FoundPeers, english.Plural(e.Need.R, "peer", ""))
	}
	fmt.Fprintf(&b, "; %s considered", english.Plural(e.Considered, "peer", ""))
	for _, reason := range slices.Sorted(maps.Keys(e.Reasons)) {
		fmt.Fprintf(&b, ", %d %s", e.Reasons[reason], reason.String())
	}
	return b.String()
}

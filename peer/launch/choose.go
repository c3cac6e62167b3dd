package launch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
)

// both returns the kinds that are in asked and in allowed, in the order of asked.
func both(asked, allowed []proclink.Kind) []proclink.Kind {
	return slices.DeleteFunc(slices.Clone(asked), func(k proclink.Kind) bool { return !slices.Contains(allowed, k) })
}

// A situation is that of two processes of which one wants a channel to the other.
type situation struct {
	here     bool   // both are on this peer
	noMemory string // why they cannot share memory, or empty
	noDirect string // why they cannot have a TCP connection, or empty
	noStream string // why the peers cannot bridge them, or empty
}

// choose says of which kind the channel is to be, the first of those allowed that
// can be, and why: also why none of the better kinds. The kind is empty when
// there is no way.
func choose(s situation, allowed []proclink.Kind) (kind proclink.Kind, why string) {
	better := proclink.Kinds
	if i := slices.IndexFunc(allowed, func(k proclink.Kind) bool { return s.against(k) == "" }); i >= 0 {
		kind = allowed[i]
		better = proclink.Kinds[:slices.Index(proclink.Kinds, kind)]
	}
	reasons := []string{"on different peers"}
	if s.here {
		reasons[0] = "both on one peer"
	}
	for _, k := range better {
		switch obstacle := s.against(k); {
		case k == proclink.Shm && !s.here: // that is said already
		case !slices.Contains(allowed, k):
			reasons = append(reasons, fmt.Sprintf("%s is not allowed", k))
		case obstacle != "":
			reasons = append(reasons, fmt.Sprintf("no %s: %s", k, obstacle))
		default:
			reasons = append(reasons, fmt.Sprintf("%s is preferred to %s", kind, k))
		}
	}
	return kind, strings.Join(reasons, "; ")
}

// against says what forbids kind k, or nothing.
func (s situation) against(k proclink.Kind) string {
	switch {
	case k == proclink.Shm && !s.here:
		return "on different peers"
	case k == proclink.Shm:
		return s.noMemory
	case k == proclink.TCP:
		return s.noDirect
	}
	return s.noStream
}

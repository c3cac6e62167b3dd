package proclink

import (
	"fmt"
	"slices"
)

// A Kind is the kind of descriptor that a channel uses.
type Kind string

// The kinds of channels between processes.
const (
	Shm    Kind = "shm"    // a ring buffer in shared memory
	TCP    Kind = "tcp"    // a TCP connection with TLS between the processes
	Stream Kind = "stream" // a pipe of package channel, bridged by the peers or shared
)

// Kinds lists all kinds, best first.
var Kinds = []Kind{Shm, TCP, Stream}

// ParseKinds parses the names of the kinds that an owner or a user allows, best first. An empty list allows all
// kinds.
func ParseKinds(names []string) ([]Kind, error) {
	var kinds []Kind
	for _, name := range names {
		k := Kind(name)
		switch {
		case !slices.Contains(Kinds, k):
			return nil, fmt.Errorf("unknown channel kind %.20q: want shm, tcp or stream", name)
		case slices.Contains(kinds, k):
			return nil, fmt.Errorf("%s is listed twice", k)
		}
		kinds = append(kinds, k)
	}
	if len(kinds) == 0 {
		return Kinds, nil
	}
	return kinds, nil
}

package status

import "github.com/p2pmpi/p2pmpi/internal/view"

// A Halt is a mode of ending a peer.
type Halt string

// The modes of ending a peer. Each releases all resources before the peer ends.
const (
	Orderly Halt = "orderly" // hands jobs over for a limited time, then ends the remaining ones
	Drain   Halt = "drain"   // hands jobs over, and waits for those that cannot be handed over
	Now     Halt = "now"     // ends all processes at once; other peers of the jobs detect the loss
)

// A JobFate is the fate of one job when the owner takes the machine back.
type JobFate struct {
	Job       string         `json:"job"`
	Program   string         `json:"program"`
	Processes []view.Process `json:"processes,omitempty"` // processes that run here, or empty if the job was submitted from here
	Fate      Fate           `json:"fate"`
}

// A Fate describes what happens to a job when its peer halts.
type Fate string

// The fates of a job.
const (
	HandedOver Fate = "handed over" // its other peers continue it
	WaitedFor  Fate = "waited for"  // the peer ends after the job
	Cancelled  Fate = "cancelled"   // ends with the peer
	GoesOn     Fate = "goes on"     // continues on its other peers, which detect the loss
)

// Fate returns the fate of a job; movable reports whether the job can continue elsewhere.
func (how Halt) Fate(movable bool) Fate {
	switch {
	case movable && how == Now:
		return GoesOn
	case movable:
		return HandedOver
	case how == Drain:
		return WaitedFor
	}
	return Cancelled
}

// A Halting is the answer to Halt: the requested mode and the fate of each job.
type Halting struct {
	Peer string    `json:"peer"`
	Mode Halt      `json:"mode"`
	Jobs []JobFate `json:"jobs"`
}

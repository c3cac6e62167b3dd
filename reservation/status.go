package reservation

import (
	"strconv"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// State is what has become of a hold.
type State byte

// The states of a hold, in the order in which it goes through them.
const (
	Held      State = iota + 1 // ends with its lease unless confirmed
	Confirmed                  // ends with its lease unless redeemed
	Running                    // redeemed; ends when the peer releases it
)

// String names the state in the words of the design.
func (s State) String() string {
	switch s {
	case Held:
		return "held"
	case Confirmed:
		return "confirmed"
	case Running:
		return "running"
	}
	return "state " + strconv.Itoa(int(s))
}

// A Status says what has become of a peer's slots:
// Free + Held + Confirmed + Running = Total.
type Status struct {
	Total     int  // the owner's limit
	Free      int  // nobody's
	Held      int  // waiting for their submitter's word
	Confirmed int  // waiting for their processes
	Running   int  // in use
	Waiting   int  // jobs in the queue
	Draining  bool // nothing new is taken
	Jobs      []JobStatus
}

// A JobStatus is one hold of a job; a job may have several. The reservation
// key is left out: whoever reads a status needs no right to start processes.
type JobStatus struct {
	Job       string
	Submitter p2ppeer.ID
	State     State
	Slots     int
	Expires   time.Time // zero when Running
}

// Snapshot returns the state of every slot, oldest hold first. Leases that
// ended since the last call that took a time are still in it.
func (l *Ledger) Snapshot() Status {
	s := Status{Total: l.limits.Slots, Free: l.free(), Waiting: len(l.queue), Draining: l.draining}
	for _, h := range l.holds {
		j := JobStatus{Job: h.Job, Submitter: h.Submitter, State: h.state, Slots: h.Slots, Expires: h.expires}
		switch h.state {
		case Held:
			s.Held += h.Slots
		case Confirmed:
			s.Confirmed += h.Slots
		case Running:
			s.Running += h.Slots
			j.Expires = time.Time{}
		}
		s.Jobs = append(s.Jobs, j)
	}
	return s
}

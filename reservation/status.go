package reservation

import (
	"strconv"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// State is the stage that a hold has reached.
type State byte

// The states of a hold, in their order.
const (
	Held      State = iota + 1 // ends with its lease unless confirmed
	Confirmed                  // ends with its lease unless redeemed
	Running                    // redeemed; ends when the peer releases it
)

var stateNames = [...]string{Held: "held", Confirmed: "confirmed", Running: "running"}

// String returns the name of the state.
func (s State) String() string {
	if s >= Held && s <= Running {
		return stateNames[s]
	}
	return "state " + strconv.Itoa(int(s))
}

// A Status counts a peer's slots by state: Free + Held + Confirmed + Running = Total.
type Status struct {
	Total     int  // the owner's limit
	Free      int  // not held by any job
	Held      int  // waiting for confirmation
	Confirmed int  // waiting for their processes
	Running   int  // in use
	Waiting   int  // number of jobs in the queue
	Draining  bool // new requests are refused
	Jobs      []JobStatus
}

// A JobStatus is one hold of a job; a job may have several. It omits the reservation key, because readers
// of a status need no right to start processes.
type JobStatus struct {
	Job       string
	Submitter p2ppeer.ID
	State     State
	Slots     int
	Expires   time.Time // zero when Running
}

// Snapshot returns the state of every slot, oldest hold first. Since it gets no time, the result may include
// leases that have ended since the last call with a time.
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

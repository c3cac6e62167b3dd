package sim

import (
	"fmt"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/reservation"
)

// A Kind is a kind of operation on a peer's slots.
type Kind byte

// The kinds of operations. All but the last two are calls of a submitter that the peer has carried out. A
// refused call is not an operation.
const (
	Granted   Kind = iota + 1 // slots are held under a key, or a hold has grown
	Confirmed                 // slots of a key are confirmed, the rest is released
	Redeemed                  // the key's processes are started
	Withdrawn                 // the submitter's job released what it had not started
	Abandoned                 // the submitter did not receive the grant of this key
	Released                  // by the peer itself: the key's processes have ended
	Observed                  // no change: the state of the peer was observed
)

var kindNames = [...]string{Granted: "granted", Confirmed: "confirmed", Redeemed: "redeemed", Withdrawn: "withdrawn",
	Abandoned: "abandoned", Released: "released", Observed: "observed"}

// String returns the kind in one word.
func (k Kind) String() string {
	if k > 0 && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// An Operation is one call on a peer's slots that succeeded.
type Operation struct {
	At        time.Time
	Kind      Kind
	Peer      p2ppeer.ID
	Submitter p2ppeer.ID // the submitter, for Granted, Confirmed, Redeemed and Withdrawn
	Job       string     // the job, for Granted, Redeemed and Withdrawn
	Key       reservation.Key
	Slots     int       // slots of the key after Granted, Confirmed, Redeemed
	Expires   time.Time // of Granted
	Free      int       // free slots reported by the peer after the operation
}

// A Violation is a promise that an operation breaks.
type Violation struct {
	Promise string // S1, S2, S3 or S4
	Operation
	What string
}

// String describes the broken promise and the operation that broke it.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s at %s: %s by %q of %s: %s", v.Promise, v.At.Format("15:04:05.000"), v.Peer, v.Kind, v.Job, v.Submitter, v.What)
}

// A History lists the operations at peers, in the order in which each peer executed them.
type History struct {
	Limits     map[p2ppeer.ID]reservation.Limits // set by the owners
	Operations []Operation
}

// Check returns the violations in the history, in order. An empty result means that S1 to S3 hold throughout. It
// also means that S4 holds at every operation: a slot counts as taken only while some submitter may assume to
// have it.
func (h *History) Check() []Violation {
	peers := map[p2ppeer.ID]*account{}
	var broken []Violation
	for _, op := range h.Operations {
		a := peers[op.Peer]
		if a == nil {
			a = &account{limits: h.Limits[op.Peer], claims: map[reservation.Key]*claim{}}
			peers[op.Peer] = a
		}
		broken = append(broken, a.judge(op)...)
	}
	return broken
}

// An account holds the claims that submitters may assume to have on a peer's slots.
type account struct {
	limits reservation.Limits
	claims map[reservation.Key]*claim
	broken []Violation // violations of the current operation
}

// A claim is what the holder of a key may assume.
type claim struct {
	submitter p2ppeer.ID
	job       string
	slots     int
	until     time.Time
	state     reservation.State
}

// over reports whether the claim's lease has ended at now.
func (c *claim) over(now time.Time) bool {
	return c.state != reservation.Running && !now.Before(c.until)
}

// judge applies op and returns the violations.
func (a *account) judge(op Operation) []Violation {
	a.broken = nil
	switch op.Kind {
	case Granted:
		a.granted(op)
	case Confirmed:
		if c := a.known(op); c != nil {
			if c.state != reservation.Confirmed {
				c.state, c.until = reservation.Confirmed, op.At.Add(reservation.ConfirmedLease)
			}
			c.slots = op.Slots
		}
	case Redeemed:
		if c := a.known(op); c != nil {
			if c.state != reservation.Confirmed || c.job != op.Job || c.slots != op.Slots {
				a.breaks("S1", op, "%d slots, of a key that is %v with %d of job %q", op.Slots, c.state, c.slots, c.job)
			}
			c.state, c.slots = reservation.Running, op.Slots
		}
	case Withdrawn:
		for key, c := range a.claims {
			if c.submitter == op.Submitter && c.job == op.Job && c.state != reservation.Running {
				delete(a.claims, key)
			}
		}
	case Abandoned:
		if c := a.claims[op.Key]; c != nil && c.state == reservation.Held {
			delete(a.claims, op.Key)
		}
	case Released:
		delete(a.claims, op.Key)
	}
	a.count(op)
	return a.broken
}

// granted applies a new or grown hold.
func (a *account) granted(op Operation) {
	c := a.claims[op.Key]
	switch {
	case !a.limits.Admits(op.Submitter, op.At):
		a.breaks("S3", op, "its owner does not admit that submitter")
	case c == nil && op.Expires.Sub(op.At) > reservation.HoldBase+time.Duration(op.Slots)*reservation.HoldPerSlot:
		a.breaks("S2", op, "held until %v, longer than a lease", op.Expires.Format("15:04:05.000"))
	case c != nil && (c.submitter != op.Submitter || c.job != op.Job || c.state == reservation.Running):
		a.breaks("S1", op, "with a key of %q of %s that is %v", c.job, c.submitter, c.state)
	case c != nil && c.over(op.At):
		a.breaks("S2", op, "with a key whose lease was over at %v", c.until.Format("15:04:05.000"))
	case c != nil && op.Expires.After(c.until):
		a.breaks("S2", op, "its lease was extended without a confirmation")
	}
	state := reservation.Held
	if c != nil {
		state = c.state
	}
	a.claims[op.Key] = &claim{submitter: op.Submitter, job: op.Job, slots: op.Slots, until: op.Expires, state: state}
}

// known returns the claim of op's key, and records a violation if its submitter has no right to it.
func (a *account) known(op Operation) *claim {
	c := a.claims[op.Key]
	switch {
	case c == nil:
		a.breaks("S1", op, "with an unknown key")
	case c.submitter != op.Submitter:
		a.breaks("S1", op, "with a key of %s", c.submitter)
	case c.over(op.At):
		a.breaks("S2", op, "its lease was over at %v", c.until.Format("15:04:05.000"))
	case op.Slots < 1 || op.Slots > c.slots:
		a.breaks("S1", op, "%d slots of %d", op.Slots, c.slots)
	}
	return c
}

// count compares the claimed slots with the existing ones.
func (a *account) count(op Operation) {
	claimed := 0
	jobs := map[[2]string]bool{}
	for _, c := range a.claims {
		if !c.over(op.At) {
			claimed += c.slots
			jobs[[2]string{string(c.submitter), c.job}] = true
		}
	}
	switch {
	case claimed > a.limits.Slots:
		a.breaks("S1", op, "%d of %d slots are claimed", claimed, a.limits.Slots)
	case a.limits.MaxJobs > 0 && len(jobs) > a.limits.MaxJobs:
		a.breaks("S3", op, "%d jobs, its owner allows %d", len(jobs), a.limits.MaxJobs)
	case op.Free > a.limits.Slots-claimed:
		a.breaks("S1", op, "reports %d free slots, but %d of %d are claimed", op.Free, claimed, a.limits.Slots)
	case op.Free < a.limits.Slots-claimed:
		a.breaks("S4", op, "reports %d free slots, but only %d of %d are claimed", op.Free, claimed, a.limits.Slots)
	}
}

func (a *account) breaks(promise string, op Operation, format string, args ...any) {
	a.broken = append(a.broken, Violation{promise, op, fmt.Sprintf(format, args...)})
}

package reservation

import (
	"maps"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// Leases. The first two are those of P2P-MPI 0.29: time to ask the other peers, plus a little for each
// process.
const (
	HoldBase       = 30 * time.Second // base of a hold's lease
	HoldPerSlot    = time.Second      // added to a hold's lease for each slot
	ConfirmedLease = time.Minute      // lease of a confirmed hold, until its processes arrive
)

// maxSlots bounds the slots in one request.
const maxSlots = view.MaxProcesses

// maxJobName bounds the bytes of a job's name, because a peer stores names that strangers send.
const maxJobName = 128

// maxKinds bounds the kinds in one request.
const maxKinds = 8

// Limits are set by the owner (promise S3).
type Limits struct {
	Slots   int // number of processes of all jobs at once
	MaxJobs int // number of jobs at once; 0 means no limit
	// Judge is the owner's policy; nil admits all submitters.
	Judge func(q Request, now time.Time) Verdict
}

// A Verdict is the decision of the owner's policy on a request.
type Verdict struct {
	Refused Reason // reason for a refusal, or 0
	Class   string // class of submitters, which share Slots
	Slots   int    // limit of the class's slots at once; 0 means only Limits.Slots
}

func (l Limits) judge(q Request, now time.Time) Verdict {
	if l.Judge == nil {
		return Verdict{}
	}
	return l.Judge(q, now)
}

// Admits reports whether the owner's policy admits submitter at all.
func (l Limits) Admits(submitter p2ppeer.ID, now time.Time) bool {
	return l.judge(Request{Submitter: submitter}, now).Refused != Denied
}

// A Request asks for slots for a job. Submitter and Job together identify the job, so a stranger that
// uses another submitter's job name gets a separate job.
type Request struct {
	Job       string
	Submitter p2ppeer.ID
	Slots     int // maximum
	// Kinds lists the kinds of the job's programs, in the owner policy's terms.
	Kinds []string
	// Since is when the job began to wait, by its submitter's clock. Earlier jobs come first. The zero time
	// means now.
	Since time.Time
	// Origin is the submitter's address, as the network shows it, in any consistent notation. Jobs of one
	// origin share limits. Origin is empty if unknown.
	Origin string
	// Waits keeps the job in the peer's queue until it has confirmed slots here, withdraws, or has not
	// asked for queueLease.
	Waits bool
}

func (q Request) valid() bool {
	return q.Job != "" && len(q.Job) <= maxJobName && q.Slots >= 1 && q.Slots <= maxSlots && len(q.Kinds) <= maxKinds
}

// A Name identifies a job. Job alone is not unique, since another submitter may use the same ID.
type Name struct {
	Job       string
	Submitter p2ppeer.ID
}

func (q Request) name() Name { return Name{q.Job, q.Submitter} }

// A Grant is the answer to a Request: 1..Request.Slots slots, held until Expires.
type Grant struct {
	Key     Key
	Slots   int
	Expires time.Time
	// Machine identifies the peer's machine to this job only: peers with the same name are on one
	// machine. Machine is empty if unknown. The Service sets it.
	Machine string
}

// A Ledger is the record of one peer's slots. It is a pure core: it starts no goroutine, reads no clock
// and draws no key. Hold, Confirm and Redeem first expire the leases that are over at the given time.
// These times must not go backwards. A Ledger is not safe for concurrent use; Service adds locking.
type Ledger struct {
	limits   Limits
	draining bool
	holds    []*hold // in order of creation; at most limits.Slots of them
	queue    queue
	barred   []Name // jobs that get no more slots, at most maxBarred
	// lapses maps a submitter or origin to the time when it last left slots unused. Entries expire after
	// maxSeniority. They are few, because each one has had a slot for HoldBase or longer.
	lapses map[string]time.Time
}

// A hold contains the slots of one key, in any state.
type hold struct {
	Request // Slots is the present number
	key     Key
	class   string // class of the submitter
	state   State
	made    time.Time
	expires time.Time // meaningless once Running
}

// NewLedger returns a ledger in which all slots are free.
func NewLedger(limits Limits) *Ledger {
	return &Ledger{limits: limits, lapses: make(map[string]time.Time)}
}

// Hold grants up to q.Slots of the free slots to the job and records them under key, which must be new
// and unguessable. The hold expires after HoldBase plus HoldPerSlot for each slot, unless it is confirmed
// (S2).
//
// If the job already has a hold that has not started, as after a lost answer, Hold returns that one with
// its key and expiry. The hold grows if q asks for more and slots are free. A job that runs may hold
// further slots.
//
// Free slots are kept for queued jobs whose turn comes before that of q, as many as each asked for and
// its class may have. The error is a Reason; refusals by the owner's policy come first. If q waits in the
// queue, the error is a *queued.
func (l *Ledger) Hold(q Request, key Key, now time.Time) (Grant, error) {
	l.Expire(now)
	if !q.valid() {
		return Grant{}, Malformed
	}
	v := l.limits.judge(q, now)
	left := l.left(v)
	switch {
	case v.Refused != 0:
		l.queue.leave(q.Submitter, q.Job)
		return Grant{}, v.Refused
	case slices.Contains(l.barred, q.name()):
		return Grant{}, Denied
	case l.draining:
		return Grant{}, Draining
	case left < 1 && l.waiting(q.Submitter, q.Job) == nil:
		l.queue.leave(q.Submitter, q.Job) // slots kept for it are useful to other jobs
		return Grant{}, Busy
	}
	q.Slots, q.Since = min(q.Slots, l.limits.Slots), l.acceptedSince(q, now)
	if v.Slots > 0 {
		q.Slots = min(q.Slots, v.Slots)
	}
	if q.Waits {
		l.queue.join(q, v, now)
	}
	l.resetSeniority(now)
	ahead := l.claims(l.queue.ahead(q))
	kept, ofClass := ahead.slots(v.Class)
	room := min(l.free()-kept, left-ofClass)
	if h := l.waiting(q.Submitter, q.Job); h != nil {
		h.Slots += max(0, min(q.Slots-h.Slots, room))
		return h.grant(), nil
	}
	switch {
	case l.full(q, ahead):
		return Grant{}, l.wait(q, MaxJobs)
	case room < 1:
		return Grant{}, l.wait(q, Busy)
	case l.find(key) != nil:
		return Grant{}, Malformed // the keys of two holds must differ
	}
	h := &hold{Request: q, key: key, class: v.Class, state: Held, made: now}
	h.Slots = min(q.Slots, room)
	h.expires = now.Add(HoldBase + time.Duration(h.Slots)*HoldPerSlot)
	l.holds = append(l.holds, h)
	return h.grant(), nil
}

// left returns how many more slots a class may have.
func (l *Ledger) left(v Verdict) int {
	if v.Slots == 0 {
		return maxSlots
	}
	left := v.Slots
	for _, h := range l.holds {
		if h.class == v.Class {
			left -= h.Slots
		}
	}
	return left
}

// Resize changes the number of slots. Holds keep their slots; if they exceed the new number, Hold grants
// nothing until enough of them have ended.
func (l *Ledger) Resize(slots int) { l.limits.Slots = slots }

// wait returns the refusal of q, with its place if q is in the queue.
func (l *Ledger) wait(q Request, why Reason) error {
	if p := l.queue.place(q.Submitter, q.Job); p != (Place{}) {
		return &queued{Reason: why, Place: p}
	}
	return why
}

// Confirm keeps the given number of the slots that key holds, frees the rest, and starts the
// ConfirmedLease. A repeated Confirm, as after a lost answer, may free more slots but does not extend the
// lease. So a submitter that redeems nothing cannot hold slots indefinitely. The error is a Reason.
func (l *Ledger) Confirm(key Key, submitter p2ppeer.ID, slots int, now time.Time) error {
	h := l.live(key, now)
	switch {
	case h == nil || h.state == Running || h.Submitter != submitter:
		return UnknownKey
	case h.state == Held && l.draining:
		return Draining
	case slots < 1 || slots > h.Slots:
		return Malformed
	}
	if h.state == Held {
		h.state, h.expires = Confirmed, now.Add(ConfirmedLease)
	}
	h.Slots = slots
	l.queue.leave(h.Submitter, h.Job)
	return nil
}

// Redeem uses up the right to start the job's processes and returns how many may start. From then on the
// job keeps the slots until Release. The error is a Reason.
func (l *Ledger) Redeem(key Key, job string, submitter p2ppeer.ID, now time.Time) (slots int, err error) {
	h := l.live(key, now)
	if h == nil || h.state != Confirmed || h.Job != job || h.Submitter != submitter {
		return 0, UnknownKey
	}
	h.state = Running
	return h.Slots, nil
}

// Release frees the slots that key holds, in any state. The peer itself calls it when the job has ended
// here. Release is idempotent.
func (l *Ledger) Release(key Key) {
	l.holds = slices.DeleteFunc(l.holds, func(h *hold) bool { return h.key == key })
}

// Abandon frees the slots that key holds, unless they are confirmed, because the submitter did not receive
// the grant. Abandon is idempotent.
func (l *Ledger) Abandon(key Key) {
	if h := l.find(key); h != nil && h.state == Held {
		l.Release(key)
	}
}

// Withdraw frees the slots that the submitter's job holds and has not used, at the submitter's request.
// Running processes keep their slots, which could otherwise be given twice (S1). Unless waits is true, the
// job also leaves the queue. Withdraw is idempotent.
func (l *Ledger) Withdraw(job string, submitter p2ppeer.ID, waits bool) {
	if h := l.waiting(submitter, job); h != nil {
		l.Release(h.key)
	}
	if !waits {
		l.queue.leave(submitter, job)
	}
}

// maxBarred bounds the number of barred jobs. A larger number would help little, because a submitter can
// give its next job another name.
const maxBarred = 256

// bar frees the slots that a job holds and has not used, and refuses further requests of the job, because the
// owner has stopped it. bar is idempotent.
func (l *Ledger) bar(job Name) {
	l.holds = slices.DeleteFunc(l.holds, func(h *hold) bool { return h.name() == job && h.state != Running })
	l.queue = slices.DeleteFunc(l.queue, func(w *waiter) bool { return w.job == job.Job && w.submitter == job.Submitter })
	if !slices.Contains(l.barred, job) {
		l.barred = append(l.barred[max(0, len(l.barred)+1-maxBarred):], job)
	}
}

// drain makes the ledger refuse all further holds and first confirmations. Confirmed slots may still be
// redeemed, since their submitters count on them.
func (l *Ledger) drain() { l.draining, l.queue = true, nil }

// Expire frees the holds whose lease is over at now and returns their keys. It removes jobs from the
// queue that have not asked again in time. Jobs that let a lease expire lose their seniority, so that
// submitters release slots they do not need.
func (l *Ledger) Expire(now time.Time) []Key {
	l.queue.expire(now)
	var over []Key
	l.holds = slices.DeleteFunc(l.holds, func(h *hold) bool {
		if h.state == Running || now.Before(h.expires) {
			return false
		}
		over = append(over, h.key)
		l.lapsed(h.Submitter, h.Origin, h.Job, now)
		return true
	})
	maps.DeleteFunc(l.lapses, func(_ string, at time.Time) bool { return now.Sub(at) >= maxSeniority })
	return over
}

// nextExpiry returns when the next lease ends; ok is false if there is none.
func (l *Ledger) nextExpiry() (at time.Time, ok bool) {
	for _, h := range l.holds {
		if h.state != Running && (!ok || h.expires.Before(at)) {
			at, ok = h.expires, true
		}
	}
	return at, ok
}

func (h *hold) grant() Grant { return Grant{Key: h.key, Slots: h.Slots, Expires: h.expires} }

func (l *Ledger) free() int {
	free := l.limits.Slots
	for _, h := range l.holds {
		free -= h.Slots
	}
	return max(0, free)
}

func (l *Ledger) find(key Key) *hold {
	for _, h := range l.holds {
		if h.key == key {
			return h
		}
	}
	return nil
}

// live returns the hold of key if its lease is not over at now.
func (l *Ledger) live(key Key, now time.Time) *hold {
	l.Expire(now)
	return l.find(key)
}

// Holds reports whether a submitter has slots, held or in use.
func (l *Ledger) Holds(submitter p2ppeer.ID) bool {
	return slices.ContainsFunc(l.holds, func(h *hold) bool { return h.Submitter == submitter })
}

// waiting returns the job's hold that has not started. There is at most one.
func (l *Ledger) waiting(submitter p2ppeer.ID, job string) *hold {
	for _, h := range l.holds {
		if h.state != Running && h.Job == job && h.Submitter == submitter {
			return h
		}
	}
	return nil
}

// full reports whether one more job would exceed MaxJobs. Jobs ahead in the queue count if slots are kept
// for them. A job that already has slots here never exceeds the limit.
func (l *Ledger) full(q Request, ahead claims) bool {
	jobs := map[Name]bool{}
	for _, h := range l.holds {
		jobs[h.name()] = true
	}
	if l.limits.MaxJobs == 0 || jobs[q.name()] {
		return false
	}
	for _, c := range ahead {
		if c.slots > 0 {
			jobs[Name{c.job, c.submitter}] = true
		}
	}
	return len(jobs) >= l.limits.MaxJobs
}

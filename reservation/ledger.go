package reservation

import (
	"maps"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// Leases. The first two are those of P2P-MPI 0.29: time enough to ask the other
// peers, and a little more for each process to be placed.
const (
	HoldBase       = 30 * time.Second // of a hold, whatever its size
	HoldPerSlot    = time.Second      // of a hold, added for each slot
	ConfirmedLease = time.Minute      // of a confirmed hold, until its processes are brought
)

// maxSlots bounds the slots that a request can ask for.
const maxSlots = view.MaxProcesses

// maxJobName bounds the bytes of a job's name: a peer keeps what a stranger sent.
const maxJobName = 128

// maxKinds bounds the kinds that a request names.
const maxKinds = 8

// Limits are the owner's (promise S3).
type Limits struct {
	Slots   int // processes at once, of all jobs; 0 gives nothing away
	MaxJobs int // jobs at once; 0 is no limit
	// Judge is the owner's policy; nil lets everybody in.
	Judge func(q Request, now time.Time) Verdict
}

// A Verdict is what the owner's policy says of a request.
type Verdict struct {
	Refused Reason // 0: it is not
	Class   string // of submitters, who share Slots
	Slots   int    // of the class at once; 0: no fewer than there are
}

// judge is Judge, where there is one.
func (l Limits) judge(q Request, now time.Time) Verdict {
	if l.Judge == nil {
		return Verdict{}
	}
	return l.Judge(q, now)
}

// Admits reports whether the owner's policy lets submitter in at all.
func (l Limits) Admits(submitter p2ppeer.ID, now time.Time) bool {
	return l.judge(Request{Submitter: submitter}, now).Refused != Denied
}

// A Request asks for slots for a job. Submitter and Job together name the job:
// a stranger who uses another's name gets a job of his own.
type Request struct {
	Job       string
	Submitter p2ppeer.ID
	Slots     int // at most so many
	// Kinds are those of the job's programs, in words that the owner's policy knows.
	Kinds []string
	// Since is when the job began to wait, by its submitter's clock. Those that began
	// earlier come first. Zero: now.
	Since time.Time
	// Origin is where the submitter asks from, as far as the network shows it, in any one way of
	// writing it. Jobs of one origin share bounds. Empty: unknown.
	Origin string
	// Waits has the job wait in the peer's queue until it has confirmed slots here,
	// withdraws, or has not asked for QueueLease.
	Waits bool
}

func (q Request) valid() bool {
	return q.Job != "" && len(q.Job) <= maxJobName && q.Slots >= 1 && q.Slots <= maxSlots && len(q.Kinds) <= maxKinds
}

// A Name names a job: others than its submitter may use its ID for one of theirs.
type Name struct {
	Job       string
	Submitter p2ppeer.ID
}

func (q Request) name() Name { return Name{q.Job, q.Submitter} }

// A Grant answers a Request: 1..Request.Slots slots, held until Expires.
type Grant struct {
	Key     Key
	Slots   int
	Expires time.Time
	// Machine names the peer's machine to this job only: peers with the same name are on one
	// machine. Empty: unknown. The Service adds it.
	Machine string
}

// A Ledger is the record of one peer's slots, a pure core: it starts no
// goroutine, reads no clock and draws no key. Every call first lets the leases
// end that are over at its time, which must not go backwards. It is not safe
// for concurrent use; Service makes it so.
type Ledger struct {
	limits   Limits
	draining bool
	holds    []*hold // in the order of their making; at most limits.Slots of them
	queue    queue
	barred   []Name // jobs that get nothing any more, at most maxBarred
	// lapses is when submitters and origins last did nothing with slots that they had, as long as
	// that matters: each had one for HoldBase and more, so they are few for each slot.
	lapses map[string]time.Time
}

// A hold is one key's slots, in whichever state.
type hold struct {
	Request // Slots is what it has now
	key     Key
	class   string // of its submitter
	state   State
	made    time.Time
	expires time.Time // of no meaning once Running
}

// NewLedger returns the ledger of a peer all of whose slots are free.
func NewLedger(limits Limits) *Ledger {
	return &Ledger{limits: limits, lapses: make(map[string]time.Time)}
}

// Hold gives up to q.Slots of the free slots to the job and remembers them
// under key, which must be new and unguessable. The hold ends HoldBase plus
// HoldPerSlot for each slot later, unless it is confirmed (S2).
//
// A job that asks again before it runs, as after a lost answer, is given its
// first hold again, with its key and expiry, grown when it asks for more and
// there is more. A job that runs may hold further slots.
//
// Free slots are kept for jobs in the queue whose turn comes before that of q, as
// many as each asked for and its class may have. The error is a Reason, that of the owner's policy first; where q has to wait for others it is a
// *Queued.
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
		l.queue.leave(q.Submitter, q.Job) // what is kept for it, others could use
		return Grant{}, Busy
	}
	q.Slots, q.Since = min(q.Slots, l.limits.Slots), l.believed(q, now)
	if v.Slots > 0 {
		q.Slots = min(q.Slots, v.Slots)
	}
	if q.Waits {
		l.queue.join(q, v, now)
	}
	l.turns(now)
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

// left counts the slots that a class may still have.
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

// Resize changes how many slots there are. Who has more than are left keeps them; nothing is
// given away until fewer are taken.
func (l *Ledger) Resize(slots int) { l.limits.Slots = slots }

// wait refuses q, which may be in the queue.
func (l *Ledger) wait(q Request, why Reason) error {
	if p := l.queue.place(q.Submitter, q.Job); p != (Place{}) {
		return &Queued{Reason: why, Place: p}
	}
	return why
}

// Confirm keeps slots of what key holds, frees the rest, and starts the
// ConfirmedLease. A repeated Confirm, after an answer that was lost, may give back more
// slots and does not extend the lease: a submitter that redeems nothing cannot hold slots
// without end. The error is a Reason.
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

// Redeem spends the right to start the job's processes, which there is once,
// and returns how many they may be. From here on the slots stay the job's until
// Release. The error is a Reason.
func (l *Ledger) Redeem(key Key, job string, submitter p2ppeer.ID, now time.Time) (slots int, err error) {
	h := l.live(key, now)
	if h == nil || h.state != Confirmed || h.Job != job || h.Submitter != submitter {
		return 0, UnknownKey
	}
	h.state = Running
	return h.Slots, nil
}

// Release frees what key holds, in whatever state: the peer itself says that
// nothing of the job is left. Releasing again does nothing.
func (l *Ledger) Release(key Key) {
	l.holds = slices.DeleteFunc(l.holds, func(h *hold) bool { return h.key == key })
}

// Abandon frees what key holds unless it is confirmed: the submitter has not
// taken the grant. Abandoning again does nothing.
func (l *Ledger) Abandon(key Key) {
	if h := l.find(key); h != nil && h.state == Held {
		l.Release(key)
	}
}

// Withdraw frees what the submitter's job holds and has not started. It is what
// a submitter can do from afar: processes that run keep their slots, or these
// would be given twice (S1). Withdrawing again does nothing. The job leaves the queue,
// unless it is to wait on.
func (l *Ledger) Withdraw(job string, submitter p2ppeer.ID, waits bool) {
	if h := l.waiting(submitter, job); h != nil {
		l.Release(h.key)
	}
	if !waits {
		l.queue.leave(submitter, job)
	}
}

// maxBarred is how many jobs are remembered that get nothing any more. A submitter can give the next
// one another name anyway.
const maxBarred = 256

// Bar frees what a job holds and has not started, and gives it nothing any more: the peer's owner does not want
// it. Barring again does nothing.
func (l *Ledger) Bar(job Name) {
	l.holds = slices.DeleteFunc(l.holds, func(h *hold) bool { return h.name() == job && h.state != Running })
	l.queue = slices.DeleteFunc(l.queue, func(w *waiter) bool { return w.job == job.Job && w.submitter == job.Submitter })
	if !slices.Contains(l.barred, job) {
		l.barred = append(l.barred[max(0, len(l.barred)+1-maxBarred):], job)
	}
}

// Drain refuses every hold and first confirmation from now on. What is
// confirmed may still start: its submitter counts on it.
func (l *Ledger) Drain() { l.draining, l.queue = true, nil }

// Expire frees the holds whose lease is over at now and returns their keys. It forgets the
// jobs in the queue that have not asked again, and puts those at the back that let their
// lease run out: who has no use for slots gives them back.
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

// NextExpiry returns when the next lease ends; ok is false when none does.
func (l *Ledger) NextExpiry() (at time.Time, ok bool) {
	for _, h := range l.holds {
		if h.state != Running && (!ok || h.expires.Before(at)) {
			at, ok = h.expires, true
		}
	}
	return at, ok
}

func (h *hold) grant() Grant { return Grant{Key: h.key, Slots: h.Slots, Expires: h.expires} }

// free counts the slots that nobody has.
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

// live finds the hold of key that is not over at now.
func (l *Ledger) live(key Key, now time.Time) *hold {
	l.Expire(now)
	return l.find(key)
}

// Holds reports whether a submitter has slots, held or in use.
func (l *Ledger) Holds(submitter p2ppeer.ID) bool {
	return slices.ContainsFunc(l.holds, func(h *hold) bool { return h.Submitter == submitter })
}

// waiting finds the one hold of the job that has not started.
func (l *Ledger) waiting(submitter p2ppeer.ID, job string) *hold {
	for _, h := range l.holds {
		if h.state != Running && h.Job == job && h.Submitter == submitter {
			return h
		}
	}
	return nil
}

// full reports whether one more job would be one too many, those ahead in the queue for which
// slots are kept included; a job that already has slots here is not one more.
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

package reservation

import (
	"cmp"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// Bounds of a peer's queue.
const (
	// queueLease is how long a job stays in the queue without asking again. It is longer than one attempt
	// plus the longest pause between attempts.
	queueLease = 12 * time.Second
	// maxTurn bounds how long slots are kept for a job without interruption. A job that collects many
	// slots has to wait for others to end, at all peers at the same time. A job that could never start
	// must not block the peer for longer than a running job might.
	maxTurn = 30 * time.Minute
	// maxAttempt is longer than an attempt holds slots before it confirms or releases them.
	maxAttempt = 10 * time.Second
	// maxSeniority bounds how long before its first request a job may claim to have begun to wait. It is
	// the tolerated difference between two clocks.
	maxSeniority = 5 * time.Minute

	maxQueue      = 256 // jobs in the queue
	maxQueuedOf   = 16  // limit per submitter
	maxQueuedFrom = 64  // limit per origin, since new identities cost nothing, but addresses do
)

// A queue holds the jobs that wait for a peer's slots, ordered by when they claim to have begun to wait.
// The order is the same at every peer, so of two competing jobs one is ahead everywhere. A queue is part
// of a Ledger.
type queue []*waiter

// A waiter is one job in a queue.
type waiter struct {
	submitter   p2ppeer.ID
	origin      string
	job         string
	slots       int     // slots of its last request
	verdict     Verdict // verdict of the owner's policy on that request
	since       time.Time
	expires     time.Time // time when it leaves the queue unless it asks again
	keptSince   time.Time // time since which slots are kept for it, or held and not confirmed; zero if they are not
	heldTooLong bool      // since keptSince it has held slots for longer than an attempt takes
}

// A Place is a job's place in a queue, 1 being the front. The zero Place means that the job is in no queue.
type Place struct{ Place, Of int }

// acceptedSince returns the accepted start of q's wait, for a job that first asks at now. The start is at
// most maxSeniority ago, and not before the last time when the submitter, or another one of the same
// origin, left slots unused.
func (l *Ledger) acceptedSince(q Request, now time.Time) time.Time {
	since := q.Since
	if since.IsZero() {
		since = now
	}
	earliest := now.Add(-maxSeniority)
	for _, who := range lapseKeys(q.Submitter, q.Origin) {
		if at := l.lapses[who]; earliest.Before(at) {
			earliest = at
		}
	}
	if since.Before(earliest) {
		return earliest
	}
	return since
}

func lapseKeys(submitter p2ppeer.ID, origin string) []string {
	who := []string{"submitter " + string(submitter)}
	if origin != "" {
		who = append(who, "origin "+origin)
	}
	return who
}

// lapsed records that a job left slots unused. The job loses its seniority.
func (l *Ledger) lapsed(submitter p2ppeer.ID, origin, job string, now time.Time) {
	for _, who := range lapseKeys(submitter, origin) {
		l.lapses[who] = now
	}
	l.queue.restartWait(submitter, job, now)
}

// before reports whether w's turn comes before v's. The order is the same at all peers.
func (w *waiter) before(v *waiter) bool {
	return cmp.Or(w.since.Compare(v.since), cmp.Compare(w.job, v.job), cmp.Compare(w.submitter, v.submitter)) < 0
}

// find returns the index of a job, or -1 if it does not wait.
func (u queue) find(submitter p2ppeer.ID, job string) int {
	return slices.IndexFunc(u, func(w *waiter) bool { return w.submitter == submitter && w.job == job })
}

// ahead returns the jobs whose turn comes before that of q.
func (u queue) ahead(q Request) queue {
	if i := u.find(q.Submitter, q.Job); i >= 0 {
		return u[:i]
	}
	me := &waiter{submitter: q.Submitter, job: q.Job, since: q.Since}
	for i, w := range u {
		if me.before(w) {
			return u[:i]
		}
	}
	return u
}

// join adds q to the queue, or renews its entry.
func (u *queue) join(q Request, v Verdict, now time.Time) {
	i := u.find(q.Submitter, q.Job)
	if i < 0 {
		if !u.makeRoom(q) {
			return
		}
		u.insert(&waiter{submitter: q.Submitter, origin: q.Origin, job: q.Job, since: q.Since})
		i = u.find(q.Submitter, q.Job)
	}
	w := (*u)[i]
	w.slots, w.verdict, w.expires = q.Slots, v, now.Add(queueLease)
}

// makeRoom reports whether there is room for one more job of q's submitter and origin. If q's origin has
// used all its places, the submitter with the most jobs loses its last one, provided that q's submitter
// then has no more jobs than that submitter. Many submitters may share one relay, so no single submitter
// may take all places.
func (u *queue) makeRoom(q Request) bool {
	from, of := 0, map[p2ppeer.ID]int{}
	for _, w := range *u {
		of[w.submitter]++
		if w.origin == q.Origin && q.Origin != "" {
			from++
		}
	}
	mine := of[q.Submitter]
	if len(*u) >= maxQueue || mine >= maxQueuedOf {
		return false
	}
	if from < maxQueuedFrom {
		return true
	}
	last := -1
	for i, w := range *u {
		if w.origin == q.Origin && (last < 0 || of[w.submitter] >= of[(*u)[last].submitter]) {
			last = i
		}
	}
	if of[(*u)[last].submitter] <= mine+1 {
		return false // the two would only displace each other
	}
	*u = slices.Delete(*u, last, last+1)
	return true
}

func (u *queue) insert(w *waiter) {
	i := slices.IndexFunc(*u, w.before)
	if i < 0 {
		i = len(*u)
	}
	*u = slices.Insert(*u, i, w)
}

func (u *queue) leave(submitter p2ppeer.ID, job string) {
	if i := u.find(submitter, job); i >= 0 {
		*u = slices.Delete(*u, i, i+1)
	}
}

// restartWait resets the start of a job's wait to now, unless it is later than now.
func (u *queue) restartWait(submitter p2ppeer.ID, job string, now time.Time) {
	i := u.find(submitter, job)
	if i < 0 {
		return
	}
	w := (*u)[i]
	*u = slices.Delete(*u, i, i+1)
	if w.since.Before(now) {
		w.since = now
	}
	w.keptSince, w.heldTooLong = time.Time{}, false
	u.insert(w)
}

// expire removes the jobs that have not asked again in time.
func (u *queue) expire(now time.Time) {
	*u = slices.DeleteFunc(*u, func(w *waiter) bool { return !now.Before(w.expires) })
}

func (u queue) place(submitter p2ppeer.ID, job string) Place {
	if i := u.find(submitter, job); i >= 0 {
		return Place{i + 1, len(u)}
	}
	return Place{}
}

// lacks returns how many slots a waiter wants beyond those that its job has.
func (l *Ledger) lacks(w *waiter) int {
	lacks := w.slots
	if h := l.waiting(w.submitter, w.job); h != nil {
		lacks -= h.Slots
	}
	return max(0, lacks)
}

// claims lists waiting jobs in the order of the queue, each with the number of slots that are kept for
// it.
type claims []claim

type claim struct {
	*waiter
	slots int
}

// claims returns the slots to keep for each job in u, the front of the queue, whether or not they are
// free. Each job gets the slots that it lacks, but the jobs of a class together get no more than the class
// may still have.
func (l *Ledger) claims(u queue) claims {
	left := make(map[string]int)
	all := make(claims, 0, len(u))
	for _, w := range u {
		class := w.verdict.Class
		if _, known := left[class]; !known {
			left[class] = max(0, l.left(w.verdict))
		}
		c := claim{w, min(l.lacks(w), left[class])}
		left[class] -= c.slots
		all = append(all, c)
	}
	return all
}

// slots returns the number of slots that are kept, in all and for a class.
func (a claims) slots(class string) (all, ofClass int) {
	for _, c := range a {
		all += c.slots
		if c.verdict.Class == class {
			ofClass += c.slots
		}
	}
	return all, ofClass
}

// resetSeniority resets the seniority of jobs that have had slots for longer than maxTurn, kept for them or
// held without confirmation. Otherwise a job could keep slots indefinitely by releasing them just before
// the lease ends and holding them again. A job for which slots were only kept is not penalized further.
func (l *Ledger) resetSeniority(now time.Time) {
	free := l.free()
	var late queue
	for _, c := range l.claims(l.queue) {
		w, mine, held := c.waiter, min(free, c.slots), l.waiting(c.submitter, c.job)
		free -= mine
		if held != nil && held.state == Held && now.Sub(held.made) > maxAttempt {
			w.heldTooLong = true
		}
		switch {
		case mine == 0 && held == nil:
			w.keptSince, w.heldTooLong = time.Time{}, false
		case w.keptSince.IsZero():
			w.keptSince = now
		case now.Sub(w.keptSince) > maxTurn:
			late = append(late, w)
		}
	}
	for _, w := range late {
		if w.heldTooLong {
			l.lapsed(w.submitter, w.origin, w.job, now)
		} else {
			l.queue.restartWait(w.submitter, w.job, now)
		}
	}
}

package reservation

import (
	"cmp"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// Bounds of a peer's queue.
const (
	// QueueLease is how long a job stays in the queue without asking again. It is longer
	// than the longest pause between two attempts and the attempt itself.
	QueueLease = 12 * time.Second
	// maxTurn is how long slots are kept for a job in a row. A job that gathers many has
	// to wait for others to end, at all peers in one turn; one that could never start must
	// not block the peer longer than one that runs might.
	maxTurn = 30 * time.Minute
	// maxAttempt is longer than an attempt holds slots before it confirms them or gives them back.
	maxAttempt = 10 * time.Second
	// maxSeniority is how long before its first request a job may claim to have begun to
	// wait. It is as much as two clocks may disagree.
	maxSeniority = 5 * time.Minute

	maxQueue      = 256 // jobs in the queue
	maxQueuedOf   = 16  // of them, of one submitter
	maxQueuedFrom = 64  // of them, of one origin: new identities are free, addresses are not
)

// A queue is the jobs that wait for a peer's slots, in the order in which they have begun to
// wait by their own account: that is the same order at every peer, so of two jobs that are
// in each other's way one comes first everywhere. It is part of a Ledger.
type queue []*waiter

// A waiter is one job in a queue.
type waiter struct {
	submitter p2ppeer.ID
	origin    string
	job       string
	slots     int     // that it asked for last
	verdict   Verdict // of the owner's policy then
	since     time.Time
	expires   time.Time // unless it asks again
	keptFrom  time.Time // that slots are kept for it, or held and not confirmed; zero: none are
	idled     bool      // it has held slots since then for longer than an attempt takes
}

// A Place is a job's place in a queue, 1 being the front. The zero Place is none.
type Place struct{ Place, Of int }

// believed is since when q waits, as far as that is believed of a job that first asks at now: no
// longer than maxSeniority, and not since before its submitter, or another one of the same origin,
// last had slots here and did nothing with them.
func (l *Ledger) believed(q Request, now time.Time) time.Time {
	since := q.Since
	if since.IsZero() {
		since = now
	}
	earliest := now.Add(-maxSeniority)
	for _, who := range answerable(q.Submitter, q.Origin) {
		if at := l.lapses[who]; earliest.Before(at) {
			earliest = at
		}
	}
	if since.Before(earliest) {
		return earliest
	}
	return since
}

// answerable names those who answer for what a job does with its slots.
func answerable(submitter p2ppeer.ID, origin string) []string {
	who := []string{"submitter " + string(submitter)}
	if origin != "" {
		who = append(who, "origin "+origin)
	}
	return who
}

// lapsed takes note that a job has had slots and has done nothing with them: it begins to wait anew.
func (l *Ledger) lapsed(submitter p2ppeer.ID, origin, job string, now time.Time) {
	for _, who := range answerable(submitter, origin) {
		l.lapses[who] = now
	}
	l.queue.again(submitter, job, now)
}

// before says whose turn comes first: the same at all peers.
func (w *waiter) before(v *waiter) bool {
	return cmp.Or(w.since.Compare(v.since), cmp.Compare(w.job, v.job), cmp.Compare(w.submitter, v.submitter)) < 0
}

// find returns the place of a job, counted from 0; -1: it does not wait.
func (u queue) find(submitter p2ppeer.ID, job string) int {
	return slices.IndexFunc(u, func(w *waiter) bool { return w.submitter == submitter && w.job == job })
}

// ahead returns those whose turn comes before that of q.
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

// join has q wait, or wait on.
func (u *queue) join(q Request, v Verdict, now time.Time) {
	i := u.find(q.Submitter, q.Job)
	if i < 0 {
		if !u.admits(q) {
			return
		}
		u.insert(&waiter{submitter: q.Submitter, origin: q.Origin, job: q.Job, since: q.Since})
		i = u.find(q.Submitter, q.Job)
	}
	w := (*u)[i]
	w.slots, w.verdict, w.expires = q.Slots, v, now.Add(QueueLease)
}

// admits reports whether there is room for one more job of q's submitter and origin. Of an origin
// that has all its places, the submitter with the most gives up its last one to who has fewer: behind
// one relay are many, and nobody is to take the places of all.
func (u *queue) admits(q Request) bool {
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
		return false // they would only take it from each other
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

// leave has a job wait no more.
func (u *queue) leave(submitter p2ppeer.ID, job string) {
	if i := u.find(submitter, job); i >= 0 {
		*u = slices.Delete(*u, i, i+1)
	}
}

// again has a job begin to wait anew. Who is ahead of the clock stays where that puts it.
func (u *queue) again(submitter p2ppeer.ID, job string, now time.Time) {
	i := u.find(submitter, job)
	if i < 0 {
		return
	}
	w := (*u)[i]
	*u = slices.Delete(*u, i, i+1)
	if w.since.Before(now) {
		w.since = now
	}
	w.keptFrom, w.idled = time.Time{}, false
	u.insert(w)
}

// expire forgets the jobs that have not asked again in time.
func (u *queue) expire(now time.Time) {
	*u = slices.DeleteFunc(*u, func(w *waiter) bool { return !now.Before(w.expires) })
}

// place returns the place of a job.
func (u queue) place(submitter p2ppeer.ID, job string) Place {
	if i := u.find(submitter, job); i >= 0 {
		return Place{i + 1, len(u)}
	}
	return Place{}
}

// lacks is how many slots a waiter wants beside those that its job has.
func (l *Ledger) lacks(w *waiter) int {
	lacks := w.slots
	for _, h := range l.holds {
		if h.Submitter == w.submitter && h.Job == w.job && h.state != Running {
			lacks -= h.Slots
		}
	}
	return max(0, lacks)
}

// claims are those who wait, in the order of the queue, each with the slots that are kept for it.
type claims []claim

type claim struct {
	*waiter
	slots int
}

// claims returns what is kept for each in u, the front of the queue, of all slots that are free or
// not: what it lacks, but all of a class no more than that may still have.
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

// slots counts those that are kept, in all and for a class.
func (a claims) slots(class string) (all, ofClass int) {
	for _, c := range a {
		all += c.slots
		if c.verdict.Class == class {
			ofClass += c.slots
		}
	}
	return all, ofClass
}

// turns has the jobs begin to wait anew that have had slots for too long, kept for them or held and
// not confirmed: one that gives its slots back just before its lease ends, and holds them again,
// would keep them for ever. One for which they were only kept has done nothing wrong, and answers for
// nothing.
func (l *Ledger) turns(now time.Time) {
	free := l.free()
	var late queue
	for _, c := range l.claims(l.queue) {
		w, mine, held := c.waiter, min(free, c.slots), l.waiting(c.submitter, c.job)
		free -= mine
		if held != nil && held.state == Held && now.Sub(held.made) > maxAttempt {
			w.idled = true
		}
		switch {
		case mine == 0 && held == nil:
			w.keptFrom, w.idled = time.Time{}, false
		case w.keptFrom.IsZero():
			w.keptFrom = now
		case now.Sub(w.keptFrom) > maxTurn:
			late = append(late, w)
		}
	}
	for _, w := range late {
		if w.idled {
			l.lapsed(w.submitter, w.origin, w.job, now)
		} else {
			l.queue.again(w.submitter, w.job, now)
		}
	}
}

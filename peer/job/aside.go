package job

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
)

// A silent replica delays its rank: outcomes wait until each replica that counts has them. The
// replica may answer again before its peer is failed. So when a master reports that its rank waits,
// the submitter sets aside the replicas of the rank whose peers do not answer the submitter either.
// The rank continues without them. A replica that answers again counts again once its master
// confirms that it lacks nothing (package replication). Until then it cannot take over: if its
// master fails meanwhile and no other replica is left, the rank is lost. A rank whose outcomes do
// not wait sets no replica aside.

const (
	// asideAfter divides the gossip period. The processes of a peer are set aside when the peer has
	// not answered for the quotient plus two round trips. By then the peer has been asked four
	// times.
	asideAfter = 2
	// asideRest limits how often the processes of a peer are set aside, so that an unstable link
	// does not fill the view group's log. After the k-th time, another suspicion has no effect for
	// k times asideRest.
	asideRest = 10 * time.Second
)

// An unheard records the silence of a link's peer.
type unheard struct {
	since atomic.Int64 // start of the fault detector's suspicion, in ns since 1970; 0: none
	trip  atomic.Int64 // round-trip time at that time, in ns; 0: unknown

	asides   int       // how often its processes were set aside
	asideIn  int64     // value of since for which they were last set aside
	asideEnd time.Time // no other suspicion sets them aside before this time
}

// lasts returns how long the peer has been suspected, or 0 if it is not.
func (u *unheard) lasts() time.Duration {
	if since := u.since.Load(); since != 0 {
		return time.Since(time.Unix(0, since))
	}
	return 0
}

// long reports whether the peer has been silent for long enough that its processes are set aside.
func (u *unheard) long(period time.Duration) bool {
	return u.lasts() >= period/asideAfter+2*time.Duration(u.trip.Load()) && u.since.Load() != 0
}

// setAside reports whether to set aside a process of the peer; is reports whether the process is
// aside now.
func (u *unheard) setAside(is bool, now time.Time) bool {
	if since := u.since.Load(); since != u.asideIn {
		if now.Before(u.asideEnd) {
			return false
		}
		u.asides++
		u.asideIn, u.asideEnd = since, now.Add(time.Duration(u.asides)*asideRest)
		return true
	}
	return !is
}

// stalled handles the report of a master that its rank waits for other replicas.
func (e *execution) stalled(p view.Process) (r *Result) {
	v := e.watch.View()
	if !v.IsMaster(p) || e.detector == nil || e.parted || e.adopted != nil || e.views != nil && e.views.Contact() != viewgroup.InTouch {
		return nil
	}
	for _, q := range v.LiveReplicas(p.Rank) {
		l := e.runsOn[q]
		switch {
		case q == p || l == nil || l.err != nil || l.peer == e.j.s.cfg.Host.ID():
		case l.unheard.lasts() == 0:
			cmp.Or(l.group, e.detector).Silent(l.peer, 1) // its silence may have begun just now
		case l.unheard.long(cmp.Or(e.j.s.cfg.Period, faultdetect.DefaultPeriod)) && l.unheard.setAside(v.AsideSince(q) != 0, time.Now()):
			e.j.log.Info().Stringer("peer", l.peer).Int("rank", q.Rank).Int("replica", q.Replica).Msg("set aside: its rank waits for it, and its peer does not answer")
			r = cmp.Or(r, e.apply(e.watch.SetAside(q)))
		}
	}
	return r
}

// SetAside requests that p, whose peer is silent, not count for the decisions of its rank, unless p
// is its master.
func (w *watch) SetAside(p view.Process) step {
	w.at(p).setAside = view.Change{Process: p, To: view.Live, Aside: true, At: w.view.AsideChanged(p)}
	return w.wish(w.at(p).setAside)
}

// mayCount reports whether p counts for the decisions of its rank, and no request to set it aside is pending.
func (w *watch) mayCount(p view.Process) bool {
	c := w.at(p).setAside
	_, pending := c.Apply(w.view)
	return w.view.AsideSince(p) == 0 && !(c.Aside && pending)
}

// UpToDate handles the report that p, which is set aside, lacks nothing any more.
func (w *watch) UpToDate(p view.Process, m *jobpb.UpToDate) step {
	if !w.view.Live(p) || m.GetSince() == 0 || m.GetTerm() == 0 {
		return step{}
	}
	w.at(p).upToDate = view.Change{Process: p, To: view.Live, Since: m.GetTerm(), At: m.GetSince()}
	return w.wish(w.at(p).upToDate)
}

// wishAgain repeats the requests that replicas of a rank count again. Their UpToDate reports may
// have arrived before the change that set them aside.
func (w *watch) wishAgain(s *step, rank int) {
	for k := range w.view.R {
		p := view.Process{Rank: rank, Replica: k}
		if c := w.at(p).upToDate; c.At != 0 {
			s.Propose = append(s.Propose, w.wish(c).Propose...)
		}
	}
}

// wish requests c, while the job runs, if it changes the view.
func (w *watch) wish(c view.Change) (s step) {
	if _, changes := c.Apply(w.view); changes && w.begun && !w.over && w.state(c.Process) == view.Live {
		s.Propose = []view.Change{c}
	}
	return s
}

// explainAsides records the reason for the replicas of p's rank that fail together with p in the next view.
func (w *watch) explainAsides(p view.Process, next view.View) {
	for _, q := range w.view.LiveReplicas(p.Rank) {
		if q != p && next.State(q) == view.Failed && w.at(q).why == "" {
			w.at(q).why = "did not answer when its master failed, and may lack outcomes of its rank"
		}
	}
}

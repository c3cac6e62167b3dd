package submit

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/view"
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

// A suspicion records the silence of a link's peer.
type suspicion struct {
	since atomic.Int64 // start of the fault detector's suspicion, in ns since 1970; 0: none
	trip  atomic.Int64 // round-trip time at that time, in ns; 0: unknown

	failed atomic.Bool // the fault detector has failed the peer, which is not handled yet

	asides   int       // how often its processes were set aside
	asideIn  int64     // value of since for which they were last set aside
	asideEnd time.Time // no other suspicion sets them aside before this time
}

// duration returns how long the peer has been suspected, or 0 if it is not.
func (u *suspicion) duration() time.Duration {
	if since := u.since.Load(); since != 0 {
		return time.Since(time.Unix(0, since))
	}
	return 0
}

// isLong reports whether the peer has been silent for long enough that its processes are set aside.
func (u *suspicion) isLong(period time.Duration) bool {
	return u.duration() >= period/asideAfter+2*time.Duration(u.trip.Load()) && u.since.Load() != 0
}

// setAside reports whether to set aside a process of the peer; is reports whether the process is
// aside now.
func (u *suspicion) setAside(is bool, now time.Time) bool {
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

// unresponsive returns the replicas to set aside, since their rank waits for them according to its
// master p, and their peers do not answer. It makes the detector question the other peers of the rank.
func (g *detectorGroup) unresponsive(p view.Process, v view.View, peers *membership) (out []view.Process) {
	if !v.IsMaster(p) || g.detector == nil {
		return nil
	}
	for _, q := range v.LiveReplicas(p.Rank) {
		l := peers.runsOn[q]
		switch {
		case q == p || l == nil || l.err != nil || l.peer == g.j.s.cfg.Host.ID():
		case l.suspicion.duration() == 0:
			cmp.Or(l.group, g.detector).Silent(l.peer, 1) // its silence may have begun just now
		case l.suspicion.isLong(cmp.Or(g.j.s.cfg.Period, faultdetect.DefaultPeriod)) && l.suspicion.setAside(v.AsideSince(q) != 0, time.Now()):
			g.j.log.Info().Stringer("peer", l.peer).Int("rank", q.Rank).Int("replica", q.Replica).Msg("set aside: its rank waits for it, and its peer does not answer")
			out = append(out, q)
		}
	}
	return out
}

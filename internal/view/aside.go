package view

import "fmt"

// AsideSince returns the epoch in which p was set aside, or 0 if it is not set aside.
func (v View) AsideSince(p Process) uint64 {
	if v.Aside == nil || !v.Contains(p) {
		return 0
	}
	return v.Aside[p.Rank*v.R+p.Replica]
}

// Counts reports whether p is live and not set aside.
func (v View) Counts(p Process) bool { return v.Live(p) && v.AsideSince(p) == 0 }

// AsideChanged returns the epoch in which p was last set aside or returned, or 0 if it was never set
// aside.
func (v View) AsideChanged(p Process) uint64 {
	if v.Aside == nil || !v.Contains(p) {
		return 0
	}
	i := p.Rank*v.R + p.Replica
	return max(v.Aside[i], v.Returned[i])
}

// SetAside returns the next epoch, in which p is set aside. A process that is already set aside is set aside
// again: it has to prove once more that it lacks nothing. If p was last set aside or returned in an epoch other
// than at, the request is outdated or has already been carried out. The view is then unchanged, and changed is
// false. The same holds if p is not live or is a master.
func (v View) SetAside(p Process, at uint64) (next View, changed bool) {
	if !v.Live(p) || v.IsMaster(p) || v.AsideChanged(p) != at {
		return v, false
	}
	next = v.next()
	next.mark(p, next.Epoch)
	return next, true
}

// Return returns the next epoch, in which p counts again after it was set aside in the epoch since. The master
// that became master in the epoch term has stated that p lacks nothing. If p was set aside in an epoch other than
// since, or the present master became master in an epoch other than term, the request is outdated. The view is
// then unchanged, and changed is false.
func (v View) Return(p Process, since, term uint64) (next View, changed bool) {
	if since == 0 || v.AsideSince(p) != since || v.Since[p.Rank] != term {
		return v, false
	}
	next = v.next()
	next.mark(p, 0)
	return next, true
}

// mark records the epoch in which p was set aside, or 0 if it is not set aside.
func (v *View) mark(p Process, since uint64) {
	if v.Aside == nil {
		if since == 0 {
			return
		}
		v.Aside, v.Returned = make([]uint64, len(v.States)), make([]uint64, len(v.States))
	}
	i := p.Rank*v.R + p.Replica
	if v.Aside[i] != 0 && since == 0 {
		v.Returned[i] = v.Epoch
	}
	v.Aside[i] = since
}

// succeed names a new master for rank, which has no live master. A replica that is set aside can become master
// only if another replica has finished, because a replica finishes only when the others lack nothing. Otherwise
// the replicas that are set aside fail with the master, because no process can send them the outcomes that they
// lack.
func (v *View) succeed(rank int) {
	ps := v.LiveReplicas(rank)
	for _, p := range ps {
		if v.Counts(p) {
			v.Masters[rank], v.Since[rank] = p.Replica, v.Epoch
			return
		}
	}
	for _, p := range ps {
		v.mark(p, 0)
		if !v.finished(rank) {
			v.States[rank*v.R+p.Replica] = Failed
		}
	}
	if len(ps) > 0 && v.finished(rank) {
		v.Masters[rank], v.Since[rank] = ps[0].Replica, v.Epoch
	}
}

// finished reports whether a replica of rank has finished.
func (v *View) finished(rank int) bool {
	for k := range v.R {
		if v.State(Process{Rank: rank, Replica: k}) == Finished {
			return true
		}
	}
	return false
}

func (v View) validAside() error {
	if v.Aside == nil && v.Returned == nil {
		return nil
	}
	if len(v.Aside) != len(v.States) || len(v.Returned) != len(v.States) {
		return fmt.Errorf("view: %d processes with %d aside epochs and %d return epochs", len(v.States), len(v.Aside), len(v.Returned))
	}
	for i, since := range v.Aside {
		p := Process{Rank: i / v.R, Replica: i % v.R}
		if since > v.Epoch || v.Returned[i] > v.Epoch || since != 0 && (!v.Live(p) || v.IsMaster(p)) {
			return fmt.Errorf("view: %v cannot be aside since epoch %d", p, since)
		}
	}
	return nil
}

package view

// MaxReplicas bounds the number of replicas that a rank has ever had.
const MaxReplicas = 64

// Has reports whether p is in the view: it is live or has finished. All other processes are refused (R5).
func (v View) Has(p Process) bool {
	s := v.State(p)
	return s == Live || s == Finished
}

// Joiner returns the process that would join rank next. Its replica index is new in the rank, so that a statement
// about a failed replica never applies to another replica. ok is false if the rank has no live replica that could
// bring the new one up to date, or has already had too many replicas.
func (v View) Joiner(rank int) (p Process, ok bool) {
	if _, lives := v.Master(rank); !lives {
		return Process{}, false
	}
	p = Process{Rank: rank}
	for v.State(p) != Vacant {
		p.Replica++
	}
	return p, p.Replica < MaxReplicas && v.N <= MaxProcesses/max(v.R, p.Replica+1)
}

// Join returns the next epoch, in which rank has one more live replica, p, which is not the master. If no
// rank has had as many replicas before, R grows, and the new places of the other ranks are Vacant. If no
// process can join, the view is unchanged, and changed is false.
func (v View) Join(rank int) (next View, p Process, changed bool) {
	p, ok := v.Joiner(rank)
	if !ok {
		return v, Process{}, false
	}
	next = v.next()
	if p.Replica == v.R {
		next.grow()
	}
	next.States[p.Rank*next.R+p.Replica] = Live
	return next, p, true
}

// grow adds one replica to each rank.
func (v *View) grow() {
	v.States = widened(v.States, v.N, Vacant)
	if v.Aside != nil {
		v.Aside, v.Returned = widened(v.Aside, v.N, 0), widened(v.Returned, v.N, 0)
	}
	v.R++
}

// widened returns per-process values of n ranks, rank by rank, with one more process in each rank.
func widened[T any](all []T, n int, more T) []T {
	wide := make([]T, 0, len(all)+n)
	for rank := range n {
		wide = append(append(wide, all[rank*len(all)/n:(rank+1)*len(all)/n]...), more)
	}
	return wide
}

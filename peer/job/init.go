package job

import "github.com/p2pmpi/p2pmpi/internal/view"

// A program that uses mpj.Init calls it in all its replicas. If a replica ends successfully without
// that call, and another one of its rank has made it, the cause is not the program: one of the two
// peers lies (V4).

// Called reports whether p has called mpj.Init, according to its peer.
func (ps *processes) Called(p view.Process) bool {
	at := ps.at(p)
	return at.initialized || at.exit != nil && at.exit.Initialized
}

// entries divides the replicas of a rank that have neither failed nor are about to fail.
type entries struct {
	called  []view.Process // have called mpj.Init
	skipped []view.Process // have ended successfully without that call
	all     int            // number of these, and of those that have done neither yet
}

func (ps *processes) entries(rank int) (e entries) {
	for _, p := range ps.replicas(rank) {
		switch {
		case !ps.has(p):
			continue
		case ps.Called(p):
			e.called = append(e.called, p)
		case ps.endedWell(p):
			e.skipped = append(e.skipped, p)
		}
		e.all++
	}
	return e
}

// majoritySkips reports whether most replicas have ended without calling mpj.Init, so that the
// program does not use it.
func (e entries) majoritySkips() bool { return 2*len(e.skipped) > e.all }

// majorityCalls reports whether most replicas have called mpj.Init.
func (e entries) majorityCalls() bool { return 2*len(e.called) > e.all }

// split reports whether each replica has called mpj.Init or ended without that call, and both have
// occurred.
func (e entries) split() bool {
	return len(e.called) > 0 && len(e.skipped) > 0 && len(e.called)+len(e.skipped) == e.all
}

// minority returns the replicas that most others contradict, and the reason for voting them out. It
// returns none if no majority decides, or if there are fewer than Quorum replicas.
func (e entries) minority() (odd []view.Process, why string) {
	switch {
	case e.all < Quorum:
	case e.majorityCalls():
		return e.skipped, "ended without calling mpj.Init, which most replicas of its rank have called"
	case e.majoritySkips():
		return e.called, "waits in mpj.Init, and most replicas of its rank have ended without calling it"
	}
	return nil, ""
}

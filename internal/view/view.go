package view

import (
	"fmt"
	"slices"
	"strconv"
)

// A Process identifies one instance of a rank: replica k of rank i. Within a job it is never reused: a failed
// process stays failed.
type Process struct {
	Rank    int `json:"rank"`    // 0..n-1
	Replica int `json:"replica"` // 0..r-1
}

// String returns p as "rank.replica".
func (p Process) String() string {
	return strconv.Itoa(p.Rank) + "." + strconv.Itoa(p.Replica)
}

// State is the state of one process in a view.
type State byte

// The states of a process. A live process finishes or fails. A finished one can still fail, if its peer
// disappears before its output is complete. Failed is final. A process that has never existed is Vacant
// until it joins its rank.
const (
	Live     State = iota // runs
	Finished              // has ended successfully and needs no further messages
	Failed                // permanently out of the view
	Vacant                // has never existed
)

// String returns the name of the state.
func (s State) String() string {
	switch s {
	case Live:
		return "live"
	case Finished:
		return "finished"
	case Failed:
		return "failed"
	case Vacant:
		return "vacant"
	}
	return "state " + strconv.Itoa(int(s))
}

// MarshalText encodes s as String does, so that a view in JSON is readable.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText decodes the output of MarshalText.
func (s *State) UnmarshalText(text []byte) error {
	for known := Live; known <= Vacant; known++ {
		if string(text) == known.String() {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("state %.20q: want live, finished, failed or vacant", text)
}

// A View is the numbered list of a job's processes (promise V1: one view per epoch). A later epoch
// replaces earlier ones. The zero View belongs to no job.
type View struct {
	Epoch   uint64  `json:"epoch"`
	N       int     `json:"n"`       // number of ranks
	R       int     `json:"r"`       // largest number of replicas that any rank has had
	States  []State `json:"states"`  // N*R states, rank by rank
	Masters []int   `json:"masters"` // per rank: replica index of its master, if one is live
	// Since is, per rank, the epoch in which its master became master. From it, a process that has missed views
	// can tell whether there was another master meanwhile.
	Since []uint64 `json:"since"`
	// Aside contains, for each process, rank by rank, the epoch in which the process was set aside, or zero if it
	// counts. A process that is set aside is live but may lack outcomes of its rank, so it is not the master.
	// Aside is nil if all processes count.
	Aside []uint64 `json:"aside,omitempty"`
	// Returned contains, for each process in the same order, the epoch in which the process was last allowed to
	// count again, or zero if that has never happened. Returned is nil if Aside is nil.
	Returned []uint64 `json:"returned,omitempty"`
}

// New returns epoch 1 of a job of n ranks with r replicas each, all live; replica 0 is the master of each
// rank.
func New(n, r int) View {
	v := View{Epoch: 1, N: n, R: r, States: make([]State, n*r), Masters: make([]int, n), Since: make([]uint64, n)}
	for rank := range v.Since {
		v.Since[rank] = v.Epoch
	}
	return v
}

// Valid returns an error unless v is well formed. It must have at least one rank and replica, a known
// state for each process, and the vacant places of a rank after all others. Each rank with a live replica
// must have a live master that is not set aside.
func (v View) Valid() error {
	if v.N < 1 || v.R < 1 || v.N > MaxProcesses/v.R || len(v.States) != v.N*v.R {
		return fmt.Errorf("view: n=%d, r=%d, but %d states", v.N, v.R, len(v.States))
	}
	if len(v.Masters) != v.N || len(v.Since) != v.N {
		return fmt.Errorf("view: n=%d with %d masters and %d epochs of masters", v.N, len(v.Masters), len(v.Since))
	}
	for i, s := range v.States {
		if s > Vacant || s != Vacant && i%v.R > 0 && v.States[i-1] == Vacant || s == Vacant && i%v.R == 0 {
			return fmt.Errorf("view: process %d cannot have state %d", i, s)
		}
	}
	for rank, k := range v.Masters {
		if m := (Process{Rank: rank, Replica: k}); !v.Contains(m) || !v.Live(m) && len(v.LiveReplicas(rank)) > 0 {
			return fmt.Errorf("view: %v is master but not live", m)
		}
		if v.Since[rank] < 1 || v.Since[rank] > v.Epoch {
			return fmt.Errorf("view: epoch %d, but the master of rank %d dates from epoch %d", v.Epoch, rank, v.Since[rank])
		}
	}
	return v.validAside()
}

// MaxProcesses bounds n*r of a job from another peer.
const MaxProcesses = 1 << 16

// Contains reports whether p is within the view's ranks and replicas.
func (v View) Contains(p Process) bool {
	return p.Rank >= 0 && p.Rank < v.N && p.Replica >= 0 && p.Replica < v.R
}

// State returns the state of p. A process outside the job is Vacant.
func (v View) State(p Process) State {
	if !v.Contains(p) {
		return Vacant
	}
	return v.States[p.Rank*v.R+p.Replica]
}

// Live reports whether p is a live process.
func (v View) Live(p Process) bool { return v.State(p) == Live }

// Master returns the master of rank. ok is false if the rank has no live replica.
func (v View) Master(rank int) (p Process, ok bool) {
	if rank < 0 || rank >= v.N {
		return Process{}, false
	}
	if p = (Process{Rank: rank, Replica: v.Masters[rank]}); !v.Live(p) {
		return Process{}, false
	}
	return p, true
}

// IsMaster reports whether p is the master of its rank.
func (v View) IsMaster(p Process) bool {
	m, ok := v.Master(p.Rank)
	return ok && m == p
}

// OutputLeader returns the output leader of rank, whose output and files count for the rank. The output
// leader is the finished replica with the lowest index. If no replica has finished, it is the master, so the
// first replica to finish need not wait for the others. ok is false if all replicas have failed.
func (v View) OutputLeader(rank int) (p Process, ok bool) {
	for k := range v.R {
		p = Process{Rank: rank, Replica: k}
		if v.State(p) == Finished {
			return p, true
		}
	}
	return v.Master(rank)
}

// IsOutputLeader reports whether p is the output leader of its rank.
func (v View) IsOutputLeader(p Process) bool {
	s, ok := v.OutputLeader(p.Rank)
	return ok && s == p
}

// Processes returns all processes that the job has had, rank by rank.
func (v View) Processes() []Process {
	ps := make([]Process, 0, v.N*v.R)
	for i := range v.N {
		for k := range v.R {
			if p := (Process{Rank: i, Replica: k}); v.State(p) != Vacant {
				ps = append(ps, p)
			}
		}
	}
	return ps
}

// LiveReplicas returns the live processes of rank, lowest index first.
func (v View) LiveReplicas(rank int) []Process {
	var ps []Process
	for k := range v.R {
		if p := (Process{Rank: rank, Replica: k}); v.Live(p) {
			ps = append(ps, p)
		}
	}
	return ps
}

// With returns the next epoch, in which p is in state s. States only advance, from Live to Finished to Failed. A
// change that does not advance the state leaves the view unchanged, and changed is false. If p was master, the
// live replica of its rank with the lowest index that is not set aside becomes master. For a rank without such a
// replica, see succeed.
func (v View) With(p Process, s State) (next View, changed bool) {
	if s <= v.State(p) {
		return v, false
	}
	next = v.next()
	next.States[p.Rank*v.R+p.Replica] = s
	next.mark(p, 0)
	if next.Masters[p.Rank] == p.Replica {
		next.succeed(p.Rank)
	}
	return next, true
}

// Promote returns the next epoch, in which p is the master of its rank. If p is not live, is set aside,
// or is already master, the view is unchanged, and changed is false.
func (v View) Promote(p Process) (next View, changed bool) {
	if !v.Counts(p) || v.IsMaster(p) {
		return v, false
	}
	next = v.next()
	next.Masters[p.Rank], next.Since[p.Rank] = p.Replica, next.Epoch
	return next, true
}

// next returns a copy of v that will become the next epoch.
func (v View) next() View {
	v.Epoch++
	v.States, v.Masters, v.Since = slices.Clone(v.States), slices.Clone(v.Masters), slices.Clone(v.Since)
	v.Aside, v.Returned = slices.Clone(v.Aside), slices.Clone(v.Returned)
	return v
}

package view

import (
	"fmt"
	"strconv"
)

// A Process is one instance of a rank that runs: replica k of rank i. Within a job
// it is never reused: once failed it stays failed.
type Process struct {
	Rank    int `json:"rank"`    // 0..n-1
	Replica int `json:"replica"` // 0..r-1
}

// String writes p as "rank.replica".
func (p Process) String() string {
	return strconv.Itoa(p.Rank) + "." + strconv.Itoa(p.Replica)
}

// State is what the view says of one process.
type State byte

// The states of a process. A live process finishes or fails; a finished one can
// still fail, when its peer goes before its output is out. Failed is final.
const (
	Live     State = iota // takes part
	Finished              // has ended well; needs nothing any more
	Failed                // out of the view for good
)

// String names the state in the words of the design.
func (s State) String() string {
	switch s {
	case Live:
		return "live"
	case Finished:
		return "finished"
	case Failed:
		return "failed"
	}
	return "state " + strconv.Itoa(int(s))
}

// MarshalText writes s as String does, so that a view in JSON can be read.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *State) UnmarshalText(text []byte) error {
	for known := Live; known <= Failed; known++ {
		if string(text) == known.String() {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("state %.20q: want live, finished or failed", text)
}

// A View is the numbered list of a job's processes (promise V1: one view per
// epoch). Later epochs replace earlier ones. The zero View is that of no job.
type View struct {
	Epoch  uint64  `json:"epoch"`
	N      int     `json:"n"`      // ranks
	R      int     `json:"r"`      // replicas of each rank
	States []State `json:"states"` // N*R of them, rank by rank
}

// New returns epoch 1 of a job of n ranks with r replicas each, all live.
func New(n, r int) View {
	return View{Epoch: 1, N: n, R: r, States: make([]State, n*r)}
}

// Valid reports whether v is well formed: at least one rank and replica, and
// one known state for each process.
func (v View) Valid() error {
	if v.N < 1 || v.R < 1 || v.N > MaxProcesses/v.R || len(v.States) != v.N*v.R {
		return fmt.Errorf("view: n=%d r=%d with %d states", v.N, v.R, len(v.States))
	}
	for i, s := range v.States {
		if s > Failed {
			return fmt.Errorf("view: process %d has unknown state %d", i, s)
		}
	}
	return nil
}

// MaxProcesses bounds n*r of a job that comes in from outside.
const MaxProcesses = 1 << 16

// Contains reports whether p is a process of the job at all.
func (v View) Contains(p Process) bool {
	return p.Rank >= 0 && p.Rank < v.N && p.Replica >= 0 && p.Replica < v.R
}

// State returns what the view says of p; a process that is not of the job is
// Failed.
func (v View) State(p Process) State {
	if !v.Contains(p) {
		return Failed
	}
	return v.States[p.Rank*v.R+p.Replica]
}

// Live reports whether p is a live process.
func (v View) Live(p Process) bool { return v.State(p) == Live }

// Master returns the process that speaks for rank now: its live replica of the
// lowest index. ok is false when the rank has none.
func (v View) Master(rank int) (p Process, ok bool) {
	for k := range v.R {
		p = Process{Rank: rank, Replica: k}
		if v.Live(p) {
			return p, true
		}
	}
	return Process{}, false
}

// IsMaster reports whether p is the master of its rank.
func (v View) IsMaster(p Process) bool {
	m, ok := v.Master(p.Rank)
	return ok && m == p
}

// Speaker returns the process whose output and files count for rank: its
// replica of the lowest index that has not failed. It differs from the master
// only when a replica has finished before others. ok is false when all failed.
func (v View) Speaker(rank int) (p Process, ok bool) {
	for k := range v.R {
		p = Process{Rank: rank, Replica: k}
		if v.State(p) != Failed {
			return p, true
		}
	}
	return Process{}, false
}

// Speaks reports whether p is the speaker of its rank.
func (v View) Speaks(p Process) bool {
	s, ok := v.Speaker(p.Rank)
	return ok && s == p
}

// Processes returns every process of the job, rank by rank.
func (v View) Processes() []Process {
	ps := make([]Process, 0, v.N*v.R)
	for i := range v.N {
		for k := range v.R {
			ps = append(ps, Process{Rank: i, Replica: k})
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

// With returns the next epoch, in which p is in state s. States only advance,
// from Live over Finished to Failed; a change that is none leaves the view as
// it is, and changed is false.
func (v View) With(p Process, s State) (next View, changed bool) {
	if s <= v.State(p) {
		return v, false
	}
	next = v
	next.Epoch++
	next.States = append([]State(nil), v.States...)
	next.States[p.Rank*v.R+p.Replica] = s
	return next, true
}

package replication

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A scenario is a small job and the faults that may occur.
type scenario struct {
	name    string
	n, r    int
	scripts [][]op // by rank
	allowed faults
	side    []view.Process // side of a partition
	piece   int            // bytes of a message log that are sent at once; zero means all
	exits   bool           // processes that are done may end before the others
	loses   bool           // the last counting replica of a rank may crash, which ends the job
}

// faults contains the faults that have occurred, and those still allowed.
type faults struct {
	crashed, exited, torn       uint64 // per process; torn per queue
	crashes, suspicions, resets uint8  // still allowed
	tears, partitions, joins    uint8
	promotions, asides          uint8
}

// A jobStates is the state space of the whole job. Its states refer by number to the states of its processes,
// the contents of the channels, the views so far, and the faults.
type jobStates struct {
	*locals
	queues     register[string, queue]
	histories  register[string, []uint32] // sequences of views
	faults     register[faults, faults]
	seen       register[string, [][]memory]  // per rank: what its program has seen
	statements register[string, []statement] // statements that have not taken effect
	noted      map[note]uint32
}

// A statement says that process of may count again.
type statement struct {
	of int
	protection.UpToDate
}

// A queue is the contents of a channel.
type queue struct {
	frames []uint32
	rest   uint32            // without the first frame
	with   map[uint32]uint32 // with one more frame
}

// A state of the whole job is a sequence of numbers.
type state []uint32

const (
	atHistory = iota
	atFaults
	atSeen
	atWords
	atProcesses
)

func newJobStates(sc scenario) *jobStates {
	w := &jobStates{locals: newLocals(sc), noted: make(map[note]uint32)}
	w.queue(nil) // number 0 is the empty queue
	return w
}

func (w *jobStates) width() int { return atProcesses + len(w.ids) + len(w.ids)*len(w.ids) }

func (w *jobStates) start() state {
	st := make(state, w.width())
	st[atHistory] = w.history([]uint32{w.viewNumber(view.New(w.n, w.r))})
	st[atFaults] = w.faultsNumber(w.allowed)
	st[atSeen] = w.observations(make([][]memory, w.n))
	st[atWords] = w.statement(nil)
	copy(st[atProcesses:], w.begin())
	return st
}

func (st state) hash() uint64 {
	h := uint64(len(st))
	for _, n := range st {
		h = (h ^ uint64(n)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	h *= 0xbf58476d1ce4e5b9
	return h ^ h>>32
}

func (w *jobStates) local(st state, i int) *local { return w.states.all[st[atProcesses+i]] }

// way returns the index, in a state, of the queue from i to j.
func (w *jobStates) way(i, j int) int { return atProcesses + len(w.ids) + i*len(w.ids) + j }

func (w *jobStates) waiting(st state, i, j int) queue { return w.queues.all[st[w.way(i, j)]] }

func (w *jobStates) faultsOf(st state) faults { return w.faults.all[st[atFaults]] }

// current returns the last view that the authority made.
func (w *jobStates) current(st state) view.View {
	h := w.histories.all[st[atHistory]]
	return w.views.all[h[len(h)-1]]
}

func (w *jobStates) queue(frames []uint32) uint32 {
	n := w.queues.number(fmt.Sprint(frames), func() queue {
		return queue{frames: slices.Clone(frames), with: make(map[uint32]uint32)}
	})
	if len(frames) > 0 {
		rest := w.queue(frames[1:]) // may reallocate the register
		w.queues.all[n].rest = rest
	}
	return n
}

// push adds one more frame to a channel.
func (w *jobStates) push(q, frame uint32) uint32 {
	if n, ok := w.queues.all[q].with[frame]; ok {
		return n
	}
	n := w.queue(append(slices.Clone(w.queues.all[q].frames), frame))
	w.queues.all[q].with[frame] = n
	return n
}

func (w *jobStates) history(views []uint32) uint32 {
	return w.histories.number(fmt.Sprint(views), func() []uint32 { return views })
}

func (w *jobStates) faultsNumber(t faults) uint32 {
	return w.faults.number(t, func() faults { return t })
}

// statement returns the number of a set of statements, regardless of order and repetition.
func (w *jobStates) statement(said []statement) uint32 {
	slices.SortFunc(said, func(a, b statement) int {
		return cmp.Or(cmp.Compare(a.of, b.of), cmp.Compare(a.Since, b.Since), cmp.Compare(a.Term, b.Term))
	})
	said = slices.Compact(said)
	return w.statements.number(fmt.Sprint(said), func() []statement { return said })
}

func (w *jobStates) observations(byRank [][]memory) uint32 {
	return w.seen.number(fmt.Sprint(byRank), func() [][]memory { return byRank })
}

// A note is an additional observation of a rank, with the number in seen of the earlier observations.
type note struct {
	seen        uint32
	rank        int
	observation observation
}

// recordObservation adds an observation of rank to seen. It checks R1 for all processes that have ever existed.
// These include processes that crash later, because their output and messages are already sent, and processes that
// the view has failed.
func (w *jobStates) recordObservation(seen uint32, rank int, s observation) (uint32, error) {
	n := note{seen, rank, s}
	if after, ok := w.noted[n]; ok {
		return after, nil
	}
	byRank := w.seen.all[seen]
	if s.step < len(byRank[rank]) {
		if byRank[rank][s.step] != s.seen {
			return 0, fmt.Errorf("R1: two replicas of rank %d see different values at step %d", rank, s.step)
		}
		w.noted[n] = seen
		return seen, nil
	}
	byRank = slices.Clone(byRank)
	byRank[rank] = append(slices.Clone(byRank[rank]), s.seen)
	w.noted[n] = w.observations(byRank)
	return w.noted[n], nil
}

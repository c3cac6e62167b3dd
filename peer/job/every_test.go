package job

import (
	"bytes"
	"flag"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

var deep = flag.Bool("deep", false, "explore larger jobs, too")

// A whole is a job as seen by its submitter: the State, the emission, and the processes. Each process
// writes two lines and ends.
//
//	process -- output, exit --> peer --> emission, State --> views, lines, result
type whole struct {
	state    State
	emission Emission
	procs    []actor
	faults   int          // number of faults still allowed
	joins    int          // number of joins still allowed
	moves    int          // number of changes of the master still allowed
	joiner   view.Process // process whose request to join is not agreed on yet, or 0.0
	result   *Result
	lines    []string // by rank: output that the user has received
}

// An actor is one process, with its messages that have not reached the submitter yet.
type actor struct {
	written int                   // number of lines
	torn    bool                  // killed in the middle of the next line
	exit    *Exit                 // set once it has ended
	lost    bool                  // lost with its peer
	spoke   bool                  // has been the output leader, so its output is accepted
	said    bool                  // the submitter knows of its exit
	told    int                   // number of lines that have reached the submitter
	ended   bool                  // the end of its output has reached the submitter
	drained bool                  // the user has all its output
	wanted  [view.Failed + 1]bool // requested states that are not agreed on yet
	since   uint64                // term of the master in its request to become master, until that is agreed on
}

// text is the output of each process. The second line is unfinished.
var text = []string{"one\n", "two"}

var killedExit = &Exit{Code: -1, Signal: "killed", Initialized: true}

// records returns the output of a that its peer has. The peer holds back an unfinished line until
// the process has ended.
func (a actor) records() (data []byte) {
	for _, line := range text[:a.written] {
		if a.exit != nil || strings.HasSuffix(line, "\n") {
			data = append(data, line...)
		}
	}
	if a.torn {
		data = append(data, text[a.written][:1]...)
	}
	return data
}

func startWhole(n, r, faults, joins, moves int) whole {
	j := whole{state: *NewState(n, r), emission: *NewEmission(n), faults: faults, joins: joins, moves: moves, lines: make([]string, n)}
	j.procs = make([]actor, n*r)
	for i, p := range j.state.View().Processes() {
		j.state.Apply(Initialized{Process: p})
		j.procs[i].spoke = j.state.View().IsOutputLeader(p)
	}
	return j
}

func (j whole) clone() whole {
	j.state.procs, j.state.moves = slices.Clone(j.state.procs), slices.Clone(j.state.moves)
	j.emission.ranks = slices.Clone(j.emission.ranks)
	j.procs, j.lines = slices.Clone(j.procs), slices.Clone(j.lines)
	return j
}

// appendKey appends a key that is the same for equal states. The reason why a process is not live
// does not affect later events, and the actor records the cause of its end.
func (j *whole) appendKey(b []byte) []byte {
	flags := func(set ...bool) (b byte) {
		for i, s := range set {
			if s {
				b |= 1 << i
			}
		}
		return b
	}
	b = append(b, byte(j.state.view.Epoch), byte(j.faults), byte(j.joins), byte(j.moves), byte(j.joiner.Replica), flags(j.state.over, j.result != nil))
	for i, w := range j.state.procs {
		a := j.procs[i]
		b = append(b, byte(j.state.view.States[i]), byte(a.written), byte(a.told),
			flags(w.joining, w.exit != nil, w.drained, a.exit != nil, a.exit == killedExit, a.torn),
			flags(a.lost, a.said, a.ended, a.drained, a.spoke),
			flags(a.wanted[view.Finished], a.wanted[view.Failed]), byte(w.asked), byte(a.since))
	}
	for rank, e := range j.emission.ranks {
		b = append(b, byte(e[0].next), byte(len(j.lines[rank])))
		for _, t := range e[0].tails {
			b = append(b, byte(t.from.Replica), byte(t.number), byte(len(t.data)))
		}
		b = append(b, 0xff, byte(j.state.view.Masters[rank]), byte(j.state.view.Since[rank]))
	}
	return b
}

// An act is an event that can happen to a process or to its messages.
type act struct {
	name string
	do   func(j *whole, p view.Process, a *actor) error // called only in a state for which can is true
	can  func(j *whole, p view.Process, a *actor) bool
}

var acts = []act{
	{"writes a line", func(_ *whole, _ view.Process, a *actor) error {
		a.written++
		return nil
	}, func(_ *whole, _ view.Process, a *actor) bool { return a.runs() && a.written < len(text) }},
	{"ends well", func(_ *whole, _ view.Process, a *actor) error {
		a.exit = &wellEnded
		return nil
	}, func(_ *whole, _ view.Process, a *actor) bool { return a.runs() && a.written == len(text) }},
	{"is killed", func(j *whole, _ view.Process, a *actor) error {
		j.faults--
		a.exit = killedExit
		return nil
	}, func(j *whole, _ view.Process, a *actor) bool { return a.runs() && j.faults > 0 }},
	{"is killed within a line", func(j *whole, _ view.Process, a *actor) error {
		j.faults--
		a.exit, a.torn = killedExit, true
		return nil
	}, func(j *whole, _ view.Process, a *actor) bool {
		return a.runs() && j.faults > 0 && a.written < len(text)
	}},
	{"is lost with its peer", func(j *whole, p view.Process, a *actor) error {
		j.faults--
		a.lost = true
		return j.follow(j.state.Apply(Lost{Processes: []view.Process{p}, Why: "is lost"}), p)
	}, func(j *whole, _ view.Process, a *actor) bool { return !a.lost && j.faults > 0 }},
	{"is ahead", func(j *whole, p view.Process, a *actor) error {
		j.moves--
		for _, c := range j.state.Apply(Ahead{Process: p}).Propose {
			a.since = c.Since
		}
		return nil
	}, func(j *whole, _ view.Process, a *actor) bool { return a.runs() && j.moves > 0 }},
	{"becomes master by agreement", func(j *whole, p view.Process, a *actor) error {
		c := view.Change{Process: p, To: view.Live, Since: a.since}
		a.since = 0
		return j.follow(j.state.Apply(Committed{Change: c}), p)
	}, func(_ *whole, _ view.Process, a *actor) bool { return a.since != 0 }},
	{"delivers its output", (*whole).output, func(j *whole, p view.Process, a *actor) bool {
		return !a.lost && !a.ended && a.spoke
	}},
	{"delivers its exit", func(j *whole, p view.Process, a *actor) error {
		a.said = true
		return j.follow(j.state.Apply(Exited{Process: p, Exit: *a.exit}), p)
	}, func(_ *whole, _ view.Process, a *actor) bool { return a.exit != nil && !a.lost && !a.said }},
	{"has its output read by the user", func(j *whole, p view.Process, a *actor) error {
		a.drained = true
		return j.follow(j.state.Apply(Drained{Process: p}), p)
	}, func(_ *whole, _ view.Process, a *actor) bool { return a.ended && !a.drained }},
	{"gets a new replica", func(j *whole, p view.Process, _ *actor) error {
		j.joins--
		j.joiner, _ = j.state.View().Joiner(p.Rank)
		s := j.state.Apply(Recruited{Process: j.joiner})
		if len(s.Propose) != 1 || s.Joined != nil || s.View != nil {
			return fmt.Errorf("%v does not request to join: %+v", j.joiner, s)
		}
		return nil
	}, func(j *whole, p view.Process, _ *actor) bool {
		return j.joins > 0 && p.Replica == 0 && j.state.Lacks(p.Rank) && !j.state.JoinPending(p.Rank)
	}},
	{"has its new replica agreed on", func(j *whole, p view.Process, _ *actor) error {
		q := j.joiner
		j.joiner = view.Process{}
		s := j.state.Apply(Committed{Change: view.Change{Process: q, To: view.Live}})
		if _, lives := j.state.View().Master(p.Rank); s.Joined == nil && lives {
			return fmt.Errorf("%v does not join: %+v", q, s)
		}
		if s.Joined != nil {
			j.procs = append(j.procs, actor{}) // the job has one rank
		}
		return j.follow(s, q)
	}, func(j *whole, p view.Process, _ *actor) bool { return p.Replica == 0 && j.joiner != view.Process{} }},
	{"has caught up", func(j *whole, p view.Process, _ *actor) error {
		return j.follow(j.state.Apply(Healed{Process: p}), p)
	}, func(j *whole, p view.Process, a *actor) bool { return j.state.lags(p) && a.runs() }},
	{"finishes by agreement", agree(view.Finished), wanted(view.Finished)},
	{"fails by agreement", agree(view.Failed), wanted(view.Failed)},
}

// agree commits that a process is in a state. The order may differ from that of the requests, since
// the group repeats lost proposals.
func agree(to view.State) func(*whole, view.Process, *actor) error {
	return func(j *whole, p view.Process, a *actor) error {
		a.wanted[to] = false
		return j.follow(j.state.Apply(Committed{Change: view.Change{Process: p, To: to}}), p)
	}
}

func wanted(to view.State) func(*whole, view.Process, *actor) bool {
	return func(_ *whole, _ view.Process, a *actor) bool { return a.wanted[to] }
}

func (a *actor) runs() bool { return a.exit == nil && !a.lost }

// output passes all output of p to the submitter, from the beginning. A peer that does not know what
// the user has received may send the output in this way.
func (j *whole) output(p view.Process, a *actor) error {
	fresh, _, ok := j.emission.Add(p, Stdout, 0, a.records())
	if !ok {
		return fmt.Errorf("R6: the output of %v is refused", p)
	}
	j.lines[p.Rank] += string(fresh)
	a.told, a.ended = a.written, a.exit != nil
	if all := strings.Join(text, ""); !strings.HasPrefix(all, j.lines[p.Rank]) {
		return fmt.Errorf("R6: the user has received %q of rank %d, which wrote %q", j.lines[p.Rank], p.Rank, all)
	}
	return nil
}

// follow checks the promises after an event of p.
func (j *whole) follow(s Effects, p view.Process) error {
	v := j.state.View()
	for _, c := range s.Propose {
		j.procs[c.Process.Rank*v.R+c.Process.Replica].wanted[c.To] = true
	}
	if s.View != nil && s.View.Epoch != v.Epoch {
		return fmt.Errorf("V1: the effects have epoch %d, the State has %d", s.View.Epoch, v.Epoch)
	}
	if s.Result != nil && j.result != nil {
		return fmt.Errorf("the job ends twice: %+v, %+v", j.result, s.Result)
	}
	if s.Result != nil {
		j.result = s.Result
	}
	for rank := range v.N {
		if _, ok := v.OutputLeader(rank); !ok && j.result == nil {
			return fmt.Errorf("R7: rank %d is lost with %v, and the job continues", rank, p)
		}
	}
	for i, q := range v.Processes() {
		j.procs[i].spoke = j.procs[i].spoke || v.IsOutputLeader(q)
	}
	if s.Result == nil {
		return nil
	}
	if s.Result.Status != StatusOK {
		return j.checkLost(*s.Result)
	}
	for rank := range v.N {
		if got := j.lines[rank] + string(j.emission.Tail(v, rank, Stdout)); got != strings.Join(text, "") {
			return fmt.Errorf("R6: the job is done, and the user has received %q of rank %d", got, rank)
		}
	}
	return nil
}

// checkLost checks the result of a failed job for R7: a rank without a replica is the reason, and
// the message names it.
func (j *whole) checkLost(r Result) error {
	for rank := range j.state.View().N {
		if _, ok := j.state.View().OutputLeader(rank); !ok && strings.Contains(r.Message, fmt.Sprintf("rank %d ", rank)) {
			return nil
		}
	}
	return fmt.Errorf("R7: the job fails with %+v in view %v", r, j.state.View())
}

// checkStep checks two consecutive views for V1: each change has an epoch of its own, and states
// only advance.
func checkStep(before, after view.View) error {
	changes, moves := uint64(0), uint64(0)
	for _, p := range after.Processes() {
		was, is := before.State(p), after.State(p)
		if is < was && was != view.Vacant {
			return fmt.Errorf("V1: a process that was %v is %v", was, is)
		}
		if is != was {
			changes++
		}
	}
	for rank, since := range before.Since {
		if after.Since[rank] != since {
			moves++ // a change of state may also be the cause
		}
	}
	if after.Epoch < before.Epoch+changes || after.Epoch > before.Epoch+changes+moves {
		return fmt.Errorf("V1: %d changes and %d other masters took the epoch from %d to %d", changes, moves, before.Epoch, after.Epoch)
	}
	return nil
}

// TestEveryOrder checks V1, R6 and R7 in every state that a small job can reach at its submitter,
// whatever the order of events.
func TestEveryOrder(t *testing.T) {
	type size struct{ n, r, faults, joins, moves int }
	jobs := []size{{1, 2, 2, 0, 0}, {2, 1, 1, 0, 0}}
	if !raceEnabled {
		jobs = append(jobs, size{1, 3, 1, 0, 0}, size{1, 2, 1, 1, 0}, size{1, 2, 1, 0, 2})
	}
	if *deep {
		jobs = append(jobs, size{1, 3, 3, 0, 0}, size{2, 2, 1, 0, 0}, size{1, 2, 2, 1, 0}, size{1, 2, 1, 1, 1}, size{1, 3, 2, 0, 1})
	}
	for _, tt := range jobs {
		t.Run(fmt.Sprintf("n=%d r=%d, %d faults, %d joins, %d moves", tt.n, tt.r, tt.faults, tt.joins, tt.moves), func(t *testing.T) {
			t.Parallel()
			s := search{seed: maphash.MakeSeed(), met: make(map[uint64]bool)}
			start := startWhole(tt.n, tt.r, tt.faults, tt.joins, tt.moves)
			s.meet(&start)
			s.follow(t, start, 0)
			t.Logf("%d states, up to %d events deep", len(s.met), s.depth)
		})
	}
}

// A search explores all states that a job can reach, depth first, so that it stores only the states
// of one path. A search remembers the hashes of visited states. Two of three million states have the
// same hash with a probability of one in four million.
type search struct {
	seed  maphash.Seed
	met   map[uint64]bool
	key   []byte // buffer for the key of the next state
	depth int
}

// meet reports whether the state of j is new.
func (s *search) meet(j *whole) bool {
	s.key = j.appendKey(s.key[:0])
	h := maphash.Bytes(s.seed, s.key)
	fresh := !s.met[h]
	s.met[h] = true
	return fresh
}

// follow explores all states that can follow from j, which is depth events from the start.
func (s *search) follow(t *testing.T, j whole, depth int) {
	s.depth = max(s.depth, depth)
	here, pressing := j.appendKey(nil), false
	for after := range everyAct(t, &j) {
		fresh := s.meet(&after)
		pressing = pressing || after.faults == j.faults && after.joins == j.joins && after.moves == j.moves && !bytes.Equal(s.key, here)
		if fresh {
			s.follow(t, after, depth+1)
		}
	}
	if !pressing && j.result == nil {
		t.Fatalf("no event is left, and the job has no result: %+v", j)
	}
}

// everyAct yields the states that follow from j by one act, and checks the promises for each.
func everyAct(t *testing.T, j *whole) iter.Seq[whole] {
	return func(yield func(whole) bool) {
		for i, p := range j.state.View().Processes() {
			for _, a := range acts {
				if !a.can(j, p, &j.procs[i]) {
					continue
				}
				after := j.clone()
				err := a.do(&after, p, &after.procs[i])
				if err == nil {
					err = checkStep(j.state.View(), after.state.View())
				}
				if err != nil {
					t.Fatalf("%v %s: %v\nfrom %+v", p, a.name, err, *j)
				}
				if !yield(after) {
					return
				}
			}
		}
	}
}

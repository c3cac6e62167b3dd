package replication

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// A job is a whole job under a random scheduler: its processes, the channels
// between them, and the one authority that makes its views.
type job struct {
	rng    *rand.Rand
	trace  func(format string, args ...any) // nil: none
	n, r   int
	procs  []*process // by rank and replica
	queues [][]channel.Frame
	busy   []int           // the queues with frames in them, and perhaps others
	listed []bool          // by queue: is in busy
	slow   []int           // by queue: how seldom it is chosen
	lazy   []int           // by process: how seldom its program gets a turn
	calm   int             // how seldom something bad happens
	haste  int             // how often frames arrive, in percent of events
	views  []view.View     // by epoch, from 1
	to     []int           // by process: the epoch that it knows
	silent []*process      // crashed, and not yet failed in the view
	sent   map[name][]byte // payload of every message that went out

	crashes, resets int // still allowed
}

// seldom are the odds against something, of which each job draws its own.
var seldom = []int{1, 1, 1, 4, 20}

// A name names a message everywhere.
type name struct {
	stream
	dest int
	seq  uint64
}

func newJob(rng *rand.Rand) *job {
	j := &job{rng: rng, n: 2 + rng.IntN(2), r: 2 + rng.IntN(2), sent: make(map[name][]byte)}
	j.crashes, j.resets = rng.IntN(j.n*(j.r-1)+1), rng.IntN(5)
	j.views = []view.View{view.New(j.n, j.r)}
	all := scripts(rng, j.n, 5*j.n+rng.IntN(5*j.n))
	for _, id := range j.views[0].Processes() {
		j.procs = append(j.procs, newProcess(id, j.views[0], all[id.Rank], j))
	}
	j.to = make([]int, len(j.procs))
	j.queues = make([][]channel.Frame, len(j.procs)*len(j.procs))
	j.listed = make([]bool, len(j.queues))
	j.slow = make([]int, len(j.queues))
	for i := range j.slow {
		j.slow[i] = seldom[rng.IntN(len(seldom))]
	}
	j.lazy = make([]int, len(j.procs))
	for i := range j.lazy {
		j.lazy[i] = seldom[rng.IntN(len(seldom))]
	}
	j.calm = seldom[rng.IntN(len(seldom))]
	j.haste = []int{5, 15, 50}[rng.IntN(3)]
	return j
}

func (j *job) tracef(format string, args ...any) {
	if j.trace != nil {
		j.trace(format, args...)
	}
}

func (j *job) index(p view.Process) int { return p.Rank*j.r + p.Replica }

// queue returns the number of the queue from one process to another.
func (j *job) queue(from, to view.Process) int { return j.index(from)*len(j.procs) + j.index(to) }

// put appends a frame to queue i.
func (j *job) put(i int, f channel.Frame) {
	j.queues[i] = append(j.queues[i], f)
	if !j.listed[i] {
		j.listed[i] = true
		j.busy = append(j.busy, i)
	}
}

// cut loses what is in queue i but a prefix.
func (j *job) cut(i int) { j.queues[i] = j.queues[i][:j.rng.IntN(len(j.queues[i])+1)] }

func (j *job) current() view.View { return j.views[len(j.views)-1] }

func (j *job) draw(*process) uint64 { return j.rng.Uint64() }

func (j *job) ahead() bool { return j.rng.IntN(2) == 0 }

// carryOut does what p's protocol asks for.
func (j *job) carryOut(p *process, out protection.Output) error {
	for _, e := range out.Send {
		if j.trace != nil {
			j.trace("  %v -> %v %+v %x", p.id, e.To, e.Frame.Header, e.Frame.Payload)
		}
		if e.Frame.Kind == channel.Data {
			if err := j.checkLeak(p, e); err != nil {
				return err
			}
		}
		if lost, ok := p.lost[e.To]; ok && lost.swallows {
			continue
		}
		j.put(j.queue(p.id, e.To), e.Frame)
	}
	if len(out.Diverged) > 0 {
		return fmt.Errorf("%v says that replicas differ: %+v", p.id, out.Diverged)
	}
	for _, d := range out.Decided {
		j.tracef("  %v decided %d = %x", p.id, d.Index, d.Outcome)
		if err := j.checkShown(p, d.Point); err != nil {
			return err
		}
	}
	return p.take(out)
}

// checkShown holds R4 against an outcome that p's program is about to see: it
// is at every live replica of the rank before it can have any effect.
func (j *job) checkShown(p *process, pt protection.Point) error {
	for _, q := range j.current().LiveReplicas(p.id.Rank) {
		if other := j.procs[j.index(q)]; !other.gone && !other.decisions.has(pt) {
			return fmt.Errorf("R4: %v sees the outcome of point %d before %v has it", p.id, pt.Index, q)
		}
	}
	return nil
}

// checkLeak holds R1 against a message that leaves p: no message of the same
// name has ever gone out with other contents.
func (j *job) checkLeak(p *process, e protection.Envelope) error {
	id := name{stream{e.Frame.Context, p.id.Rank}, e.To.Rank, e.Frame.Seq}
	if before, ok := j.sent[id]; ok && !bytes.Equal(before, e.Frame.Payload) {
		return fmt.Errorf("R1: %v sends %+v with %x, which was %x", p.id, id, e.Frame.Payload, before)
	}
	j.sent[id] = e.Frame.Payload
	return nil
}

// deliver hands the first frame of a queue to its receiver.
func (j *job) deliver(i int) error {
	q := &j.queues[i]
	from, to := j.procs[i/len(j.procs)], j.procs[i%len(j.procs)]
	f := (*q)[0]
	*q = (*q)[1:]
	if to.gone {
		return nil
	}
	if j.trace != nil {
		j.trace("%v receives %+v from %v", to.id, f.Header, from.id)
	}
	out, err := to.Receive(from.id, f)
	if err != nil {
		return fmt.Errorf("%v: %w", to.id, err)
	}
	return j.carryOut(to, out)
}

// spare reports whether the rank of p has something left without p.
func (j *job) spare(p *process) bool {
	for k := range j.r {
		q := j.procs[p.id.Rank*j.r+k]
		crashed := q.gone && j.current().State(q.id) != view.Finished
		if q != p && !crashed && j.current().State(q.id) != view.Failed {
			return true
		}
	}
	return false
}

// crash stops p. Each of its channels has carried some of what p put on it.
func (j *job) crash(p *process) {
	j.tracef("%v crashes", p.id)
	j.crashes--
	p.gone = true
	j.silent = append(j.silent, p)
	for _, to := range j.procs {
		j.cut(j.queue(p.id, to.id))
	}
}

// conclude makes a new view in which p is in state s.
func (j *job) conclude(p *process, s view.State) {
	if v, changed := j.current().With(p.id, s); changed {
		j.tracef("view %d: %v %v", v.Epoch, p.id, s)
		j.views = append(j.views, v)
	}
}

// inform hands p the view of a later epoch.
func (j *job) inform(p *process, epoch int) error {
	j.to[j.index(p.id)] = epoch
	j.tracef("%v learns view %d", p.id, epoch+1)
	return j.carryOut(p, p.View(j.views[epoch]))
}

// breakChannel loses what is on the channel from p to q but a prefix. Whether
// what p puts on it before it is told is lost too is left to chance.
func (j *job) breakChannel(p *process, q view.Process) {
	j.tracef("channel %v -> %v breaks", p.id, q)
	j.resets--
	j.cut(j.queue(p.id, q))
	p.lost[q] = lostChannel{swallows: j.rng.IntN(2) == 0}
}

// divide cuts off a random side of the job: the channels across carry nothing
// until they are reopened, and the view may fail the side, which runs on.
func (j *job) divide() {
	j.resets--
	side := make([]bool, len(j.procs))
	for i := range side {
		side[i] = j.rng.IntN(3) == 0
	}
	failed := j.rng.IntN(2) == 0
	j.tracef("partition %v, failed %v", side, failed)
	for i, p := range j.procs {
		for k, q := range j.procs {
			if side[i] != side[k] {
				j.cut(j.queue(p.id, q.id))
				p.lost[q.id] = lostChannel{swallows: true}
			}
		}
		if failed && side[i] && j.current().Live(p.id) && !p.gone && j.spare(p) {
			j.conclude(p, view.Failed)
		}
	}
}

func (j *job) reopen(p *process) error {
	for _, q := range j.procs { // not over the map: the schedule must be repeatable
		if _, ok := p.lost[q.id]; ok {
			j.tracef("channel %v -> %v reopens", p.id, q.id)
			delete(p.lost, q.id)
			if err := j.carryOut(p, p.Reopened(q.id)); err != nil {
				return err
			}
		}
	}
	return nil
}

package replication

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A job is a whole job under a random scheduler: its processes, the channels between them, and the only authority
// that makes its views.
type job struct {
	rng    *rand.Rand
	trace  func(format string, args ...any) // may be nil
	n, r   int
	most   int        // greatest number of replicas of a rank
	procs  []*process // by rank and replica
	queues [][]frame.Frame
	busy   []int                       // queues that may contain frames
	listed []bool                      // per queue: whether it is in busy
	slow   []int                       // per queue: odds against choosing it
	lazy   []int                       // per process: odds against a turn of its program
	calm   int                         // odds against a fault
	haste  int                         // share of events that are arrivals, in percent
	views  []view.View                 // by epoch, from 1
	to     []int                       // per process: the epoch of its view
	silent []*process                  // crashed processes that have not failed in the view yet
	sent   map[name][]byte             // payload of every message that a process has sent
	shown  []map[protection.Point]bool // per rank: points whose outcome a program has seen

	crashes, resets, joins, promotions int // number of each that is still allowed
}

// eventOdds contains odds, from which each job draws its own.
var eventOdds = []int{1, 1, 1, 4, 20}

// A name identifies a message at every process.
type name struct {
	stream
	dest int
	seq  uint64
}

func newJob(rng *rand.Rand) *job {
	j := &job{rng: rng, n: 2 + rng.IntN(2), r: 2 + rng.IntN(2), sent: make(map[name][]byte)}
	if rng.IntN(20) == 0 { // such a job takes ten times as long
		j.n, j.r = 2+rng.IntN(7), 2+rng.IntN(3)
	}
	j.joins = rng.IntN(4)
	j.crashes, j.resets = rng.IntN(j.n*(j.r-1)+1+j.joins), rng.IntN(5)
	j.most = j.r + j.joins
	j.promotions = rng.IntN(5)
	j.views = []view.View{view.New(j.n, j.r)}
	all := scripts(rng, j.n, 5*j.n+rng.IntN(5*j.n))
	for range j.n {
		j.shown = append(j.shown, make(map[protection.Point]bool))
	}
	for _, id := range view.New(j.n, j.most).Processes() {
		j.procs = append(j.procs, newProcess(id, j.views[0], all[id.Rank], j))
	}
	j.to = make([]int, len(j.procs))
	j.queues = make([][]frame.Frame, len(j.procs)*len(j.procs))
	j.listed = make([]bool, len(j.queues))
	j.slow = make([]int, len(j.queues))
	for i := range j.slow {
		j.slow[i] = eventOdds[rng.IntN(len(eventOdds))]
	}
	j.lazy = make([]int, len(j.procs))
	for i := range j.lazy {
		j.lazy[i] = eventOdds[rng.IntN(len(eventOdds))]
	}
	j.calm = eventOdds[rng.IntN(len(eventOdds))]
	j.haste = []int{5, 15, 50}[rng.IntN(3)]
	return j
}

func (j *job) tracef(format string, args ...any) {
	if j.trace != nil {
		j.trace(format, args...)
	}
}

func (j *job) index(p view.Process) int { return p.Rank*j.most + p.Replica }

// queue returns the number of the queue from one process to another.
func (j *job) queue(from, to view.Process) int { return j.index(from)*len(j.procs) + j.index(to) }

// put appends a frame to queue i.
func (j *job) put(i int, f frame.Frame) {
	j.queues[i] = append(j.queues[i], f)
	if !j.listed[i] {
		j.listed[i] = true
		j.busy = append(j.busy, i)
	}
}

// cut truncates queue i to a random prefix.
func (j *job) cut(i int) { j.queues[i] = j.queues[i][:j.rng.IntN(len(j.queues[i])+1)] }

func (j *job) current() view.View { return j.views[len(j.views)-1] }

func (j *job) draw(*process) uint64 { return j.rng.Uint64() }

func (j *job) piece(*process) int { return 1 + j.rng.IntN(200) }

func (j *job) ahead() bool { return j.rng.IntN(2) == 0 }

// carryOut carries out the output of p's protocol.
func (j *job) carryOut(p *process, out protection.Output) error {
	complete := p.logComplete()
	if err := p.take(out); err != nil {
		return err
	}
	if p.cut && !p.gone {
		j.tracef("%v: %v", p.id, out.Lost)
		j.crashes++
		j.crash(p)
	}
	for _, e := range append(out.Send, p.pieces(out)...) {
		if j.trace != nil {
			j.trace("  %v -> %v %+v %x", p.id, e.To, e.Frame.Header, e.Frame.Payload)
		}
		if e.Frame.Kind == frame.Data {
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
		return fmt.Errorf("%v reports a difference between replicas: %+v", p.id, out.Diverged)
	}
	for _, d := range out.Decided {
		j.tracef("  %v decided %d = %x", p.id, d.Index, d.Outcome)
		if err := j.checkShown(p, d.Point); err != nil {
			return err
		}
	}
	if complete && p.joined && j.current().Live(p.id) {
		return j.checkKnown(p)
	}
	return nil
}

// checkKnown checks R4 for a new process that is as well informed as its rank: it has every outcome that any
// program of the rank has seen.
func (j *job) checkKnown(p *process) error {
	for pt := range j.shown[p.id.Rank] {
		if !p.agreement.decisions.has(pt) {
			return fmt.Errorf("R4: %v lacks the outcome of point %d, which its rank has seen", p.id, pt.Index)
		}
	}
	return nil
}

// checkShown checks R4 for an outcome that p's program is about to see: every live replica of the rank
// has it before it can have any effect.
func (j *job) checkShown(p *process, pt protection.Point) error {
	j.shown[p.id.Rank][pt] = true
	for _, q := range j.current().LiveReplicas(p.id.Rank) {
		if other := j.procs[j.index(q)]; !other.gone && other.logComplete() && !other.agreement.decisions.has(pt) {
			return fmt.Errorf("R4: %v sees the outcome of point %d before %v has it", p.id, pt.Index, q)
		}
	}
	return nil
}

// judge checks promises in the state of p. At most one replica of its rank decides (R4). No process has dropped a
// message that p lacks, and p has dropped no message that others lack (R3).
func (j *job) judge(p *process) error {
	if p.gone || !p.takesPart() || !j.current().Live(p.id) {
		return nil
	}
	decider := p.Decider()
	for _, q := range j.procs {
		if q == p || q.gone || !q.takesPart() || !j.current().Live(q.id) {
			continue
		}
		if q.id.Rank == p.id.Rank {
			if decider && q.Decider() {
				return fmt.Errorf("R4: %v and %v both decide", p.id, q.id)
			}
			decider = decider || q.Decider()
			continue
		}
		for _, way := range [][2]*process{{p, q}, {q, p}} {
			sender, receiver := way[0].flowsWith(way[1].id.Rank), way[1].flowsWith(way[0].id.Rank)
			if err := checkKept(way[0].id, way[1].id, sender, receiver); err != nil {
				return err
			}
		}
	}
	return nil
}

// flowsWith returns the state of the streams from and to one rank, for checking other promises.
func (p *process) flowsWith(rank int) *local {
	l := &local{logComplete: p.logComplete(), flows: make(map[stream]flow)}
	for _, context := range []uint32{named, wild} {
		l.flows[stream{context, rank}] = flowOf(p.Protocol, context, rank)
	}
	return l
}

// checkLeak checks R1 for a message that p sends: no message of the same name was ever sent with different
// contents.
func (j *job) checkLeak(p *process, e protection.Envelope) error {
	id := name{stream{e.Frame.Context, p.id.Rank}, e.To.Rank, e.Frame.Seq}
	if before, ok := j.sent[id]; ok && !bytes.Equal(before, e.Frame.Payload) {
		return fmt.Errorf("R1: %v sends %+v with payload %x, another replica sent %x", p.id, id, e.Frame.Payload, before)
	}
	j.sent[id] = e.Frame.Payload
	return nil
}

// deliver passes the first frame of a queue to its receiver.
func (j *job) deliver(i int) error {
	q := &j.queues[i]
	from, to := j.procs[i/len(j.procs)], j.procs[i%len(j.procs)]
	if !to.gone && !to.knows(from.id) {
		return nil // the receiver has not accepted the channel yet
	}
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

// spare reports whether the rank of p has a live replica besides p.
func (j *job) spare(p *process) bool {
	for k := range j.most {
		q := j.procs[p.id.Rank*j.most+k]
		state := j.current().State(q.id)
		if q != p && (state == view.Finished || state == view.Live && !q.gone && q.logComplete()) {
			return true
		}
	}
	return false
}

// crash stops p. Each channel of p has transmitted a part of p's frames.
func (j *job) crash(p *process) {
	j.tracef("%v crashes", p.id)
	j.crashes--
	p.gone = true
	j.silent = append(j.silent, p)
	for _, to := range j.procs {
		j.cut(j.queue(p.id, to.id))
	}
}

// changeState makes a new view in which p is in state s.
func (j *job) changeState(p *process, s view.State) {
	if v, changed := j.current().With(p.id, s); changed {
		j.tracef("view %d: %v %v", v.Epoch, p.id, s)
		j.views = append(j.views, v)
	}
}

// promote makes a new view in which p is master.
func (j *job) promote(p *process) {
	if v, changed := j.current().Promote(p.id); changed && p.logComplete() {
		j.promotions--
		j.tracef("view %d: %v is master", v.Epoch, p.id)
		j.views = append(j.views, v)
	}
}

// inform passes p the view of a later epoch.
func (j *job) inform(p *process, epoch int) error {
	j.to[j.index(p.id)] = epoch
	j.tracef("%v gets view %d", p.id, epoch+1)
	return j.carryOut(p, p.View(j.views[epoch]))
}

// breakChannel loses the frames on the channel from p to q except for a random prefix. Frames that p sends before
// it learns of the break are lost at random.
func (j *job) breakChannel(p *process, q view.Process) {
	j.tracef("channel %v -> %v breaks", p.id, q)
	j.resets--
	j.cut(j.queue(p.id, q))
	p.lost[q] = lostChannel{swallows: j.rng.IntN(2) == 0}
}

// partition disconnects a random side of the job: the channels between the sides transmit nothing until they are
// reopened. The view may fail that side, which continues to run.
func (j *job) partition() {
	j.resets--
	side := make([]bool, len(j.procs))
	for i := range side {
		side[i] = j.rng.IntN(3) == 0
	}
	failed := j.rng.IntN(2) == 0
	j.tracef("partition %v, failed %v", side, failed)
	for i, p := range j.procs {
		for k, q := range j.procs {
			if side[i] != side[k] && !p.notStarted() {
				j.cut(j.queue(p.id, q.id))
				p.lost[q.id] = lostChannel{swallows: true}
			}
		}
		if failed && side[i] && j.current().Live(p.id) && !p.gone && j.spare(p) {
			j.changeState(p, view.Failed)
		}
	}
}

// addReplica adds one more replica to a random rank in the view, preferably to a rank that has lost replicas.
func (j *job) addReplica() {
	rank := j.rng.IntN(j.n)
	if len(j.current().LiveReplicas(rank)) >= j.r && j.rng.IntN(10) != 0 {
		return
	}
	if v, p, ok := j.current().Join(rank); ok {
		j.tracef("view %d: %v joins", v.Epoch, p)
		j.joins--
		j.views = append(j.views, v)
	}
}

// begin starts p, which is in the view, with that view or a later one.
func (j *job) begin(p *process) {
	first := slices.IndexFunc(j.views, func(v view.View) bool { return v.Live(p.id) })
	epoch := first + j.rng.IntN(len(j.views)-first)
	j.to[j.index(p.id)] = epoch
	j.tracef("%v begins with view %d", p.id, epoch+1)
	p.begin(j.views[epoch])
}

func (j *job) reopen(p *process) error {
	for _, q := range j.procs { // not in the random order of the map, because the schedule must be repeatable
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

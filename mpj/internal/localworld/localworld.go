package localworld

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine/direct"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine/protected"
	"github.com/p2pmpi/p2pmpi/mpj/internal/messagelog"
	"github.com/p2pmpi/p2pmpi/mpj/internal/protect"
)

// A Config describes a job.
type Config struct {
	Ranks    int
	Replicas int
	Sockets  bool // connect processes with socket pairs
	Rings    bool // connect processes through shared memory
	// Reading determines whether receivers of rings read long payloads in place. All engines are in
	// one process, so only ReadAny allows this.
	Reading channel.Reading
	// Wrap, if not nil, returns a replacement for the writing end of a new channel. Tests use it to
	// break channels and to count messages.
	Wrap func(from, to view.Process, s channel.Sender) channel.Sender
	// Diverged, if not nil, is called with the report of process p on messages that differ between
	// replicas. It replaces ending the job.
	Diverged func(p view.Process, d protection.Divergence)
	// Heal, if not empty, is the folder in which processes keep received messages, so that new
	// processes can Join.
	Heal string
	// Ahead, if not nil, is called when process p is ahead of its rank's master. It replaces making
	// p the master.
	Ahead func(p view.Process)
	// Stalled, if not nil, is called when p, the master of its rank, waits for other replicas.
	Stalled func(p view.Process)
}

// A World is a job in this process.
type World struct {
	config  Config
	ctx     context.Context
	start   time.Time
	bells   map[view.Process]*channel.Bell // set with Rings
	running sync.WaitGroup
	program func(view.Process, *engine.Engine) error

	mu      sync.Mutex
	engines map[view.Process]*engine.Engine
	view    view.View
	sums    map[int][]protection.Sum // by rank: sums of the first replica to finish
	failed  error                    // reason why the job has ended early
}

// maxJoined is the number of processes that may join a rank of a job with Rings.
const maxJoined = 4

// New returns a job whose processes are ready to start. The job ends early if ctx ends.
func New(ctx context.Context, c Config) *World {
	w := &World{
		config: c, ctx: ctx, start: time.Now(),
		engines: make(map[view.Process]*engine.Engine), view: view.New(c.Ranks, c.Replicas),
		sums: make(map[int][]protection.Sum),
	}
	if c.Rings {
		var err error
		if w.bells, err = newBells(view.New(c.Ranks, c.Replicas+maxJoined).Processes()); err != nil {
			w.config.Rings = false // opening a ring would also fail
			w.failed = err
		}
	}
	for _, p := range w.view.Processes() {
		w.begin(w.engineConfig(p, w.view), protect.For(p, w.view, false), nil)
	}
	return w
}

func (w *World) engineConfig(p view.Process, v view.View) engine.Config {
	c := engine.Config{
		Self: p, View: v, Transport: direct.New, Opener: opener{w, p},
		Clock:   func() time.Duration { return time.Since(w.start) },
		Crowded: w.config.Ranks*w.config.Replicas > runtime.NumCPU(),
	}
	if bell := w.bells[p]; bell != nil {
		c.Bell = bell
	}
	return c
}

// begin makes the engine of a process. protocol is nil without replicas. joined is called when the
// process, if it is new, has caught up with its rank.
func (w *World) begin(c engine.Config, protocol protection.Protocol, joined func(messages, bytes uint64)) *engine.Engine {
	if protocol != nil {
		c.Transport = protected.New(w.protectedConfig(c.Self, protocol, joined))
	}
	w.engines[c.Self] = engine.New(w.ctx, c)
	return w.engines[c.Self]
}

// protectedConfig returns the configuration of the transport of a process with replicas.
func (w *World) protectedConfig(p view.Process, protocol protection.Protocol, joined func(messages, bytes uint64)) protected.Config {
	c := protected.Config{
		Protocol: protocol, Joined: joined,
		Diverged: func(d protection.Divergence) { w.diverged(p, d) },
		Ahead:    func() { w.ahead(p) },
		Stalled: func() {
			if w.config.Stalled != nil {
				w.config.Stalled(p)
			}
		},
		UpToDate: func(said protection.UpToDate) {
			w.advance(func(v view.View) (view.View, bool) { return v.Return(p, said.Since, said.Term) })
		},
	}
	if w.config.Heal != "" {
		log, err := messagelog.New(w.config.Heal, protect.LogLimit)
		if err != nil {
			w.failed = err
		}
		c.Log = log
	}
	return c
}

// newBells returns a bell for each process.
func newBells(processes []view.Process) (map[view.Process]*channel.Bell, error) {
	f, err := channel.NewBoard(len(processes))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	board, err := channel.MapBoard(f)
	if err != nil {
		return nil, err
	}
	defer board.Close()
	bells := make(map[view.Process]*channel.Bell)
	for i, p := range processes {
		if bells[p], err = board.Bell(i); err != nil {
			return nil, err
		}
	}
	return bells, nil
}

// Ranks returns the number of ranks.
func (w *World) Ranks() int { return w.config.Ranks }

// Run runs program as every process, and returns when all have returned. The first error of a
// process that was not killed ends the job; Run returns it.
func (w *World) Run(program func(view.Process, *engine.Engine) error) error {
	w.mu.Lock()
	w.program = program
	for p, e := range w.engines {
		w.running.Go(func() { w.run(p, e) })
	}
	w.mu.Unlock()
	w.running.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

func (w *World) run(p view.Process, e *engine.Engine) {
	defer e.Close()
	if err := w.program(p, e); err != nil && !w.killed(p) {
		w.Fail(fmt.Errorf("rank %d: %w", p.Rank, err))
	}
}

// Join starts one more process of rank while the job runs. It is called from within a program.
// joined is called when the new process has caught up with its rank.
func (w *World) Join(rank int, joined func(messages, bytes uint64)) (view.Process, error) {
	w.mu.Lock()
	next, p, ok := w.view.Join(rank)
	if !ok {
		w.mu.Unlock()
		return p, fmt.Errorf("no process can join rank %d", rank)
	}
	c := w.engineConfig(p, next)
	w.view = next
	e := w.begin(c, protect.For(p, next, true), joined)
	w.running.Go(func() { w.run(p, e) })
	w.mu.Unlock()
	w.tell(next)
	return p, nil
}

// Fail ends the job with err, unless it has already ended with another error.
func (w *World) Fail(err error) {
	w.mu.Lock()
	first := w.failed == nil
	if first {
		w.failed = err
	}
	w.mu.Unlock()
	if !first {
		return
	}
	for _, e := range w.all() {
		e.Fail(fmt.Errorf("the job has ended: %w", err))
	}
}

// Compare fails the job if the messages that p has sent differ from those of another replica of its rank.
// p must be about to finish. With Config.Diverged, Compare does nothing.
func (w *World) Compare(p view.Process, sums []protection.Sum) {
	if w.config.Diverged != nil {
		return
	}
	w.mu.Lock()
	first, ok := w.sums[p.Rank]
	if !ok {
		w.sums[p.Rank] = sums
	}
	w.mu.Unlock()
	if x, y, unlike := protection.FirstDifference(sums, first); ok && unlike {
		w.Fail(fmt.Errorf("replica %d of rank %d has diverged: it sent %v, another replica sent %v", p.Replica, p.Rank, x, y))
	}
}

// Finish marks process p as finalized.
func (w *World) Finish(p view.Process) { w.change(p, view.Finished) }

// Kill ends process p as in a crash: data in its channels may or may not arrive. The job fails if
// the rank has no replica left.
func (w *World) Kill(p view.Process) {
	w.change(p, view.Failed)
	w.engine(p).Fail(errors.New("killed"))
	w.mu.Lock()
	v := w.view
	w.mu.Unlock()
	for k := range v.R {
		if v.Has(view.Process{Rank: p.Rank, Replica: k}) {
			return
		}
	}
	w.Fail(fmt.Errorf("rank %d has lost all its replicas", p.Rank))
}

// diverged ends the job, or calls Config.Diverged. Within one process, only the program can cause a
// divergence.
func (w *World) diverged(p view.Process, d protection.Divergence) {
	if w.config.Diverged != nil {
		w.config.Diverged(p, d)
	} else if d.Differs() {
		w.Fail(fmt.Errorf("replica %d of rank %d has diverged: %v", p.Replica, p.Rank, d))
	}
}

func (w *World) ahead(p view.Process) {
	if w.config.Ahead != nil {
		w.config.Ahead(p)
		return
	}
	w.Promote(p)
}

// Promote makes process p the master of its rank, if p is live.
func (w *World) Promote(p view.Process) {
	w.advance(func(v view.View) (view.View, bool) { return v.Promote(p) })
}

// SetAside makes the rank of p stop waiting for p, if p is live and not the master.
func (w *World) SetAside(p view.Process) {
	w.advance(func(v view.View) (view.View, bool) { return v.SetAside(p, v.AsideChanged(p)) })
}

// View returns the current view.
func (w *World) View() view.View {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view
}

func (w *World) killed(p view.Process) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view.State(p) == view.Failed
}

// change sets the state of p in the view to s.
func (w *World) change(p view.Process, s view.State) {
	w.advance(func(v view.View) (view.View, bool) { return v.With(p, s) })
}

// advance makes the next view and passes it to all engines. A view may overtake an older view, which
// engines then drop.
func (w *World) advance(to func(view.View) (view.View, bool)) {
	w.mu.Lock()
	next, changed := to(w.view)
	w.view = next
	w.mu.Unlock()
	if !changed {
		return
	}
	w.tell(next)
}

// tell passes a view to all engines.
func (w *World) tell(v view.View) {
	for _, e := range w.all() {
		e.View(v)
	}
}

func (w *World) all() []*engine.Engine {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.engines))
}

func (w *World) engine(p view.Process) *engine.Engine {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.engines[p]
}

// An opener opens channels from one process.
type opener struct {
	world *World
	self  view.Process
}

// Open implements channel.Opener.
func (o opener) Open(_ context.Context, to view.Process) (channel.Sender, error) {
	s, r, err := o.pair(to)
	if err != nil {
		return nil, err
	}
	e := o.world.engine(to)
	if e == nil {
		r.Close()
		s.Close()
		return nil, fmt.Errorf("process %v does not exist yet", to)
	}
	e.Accept(o.self, r)
	if o.world.config.Wrap != nil {
		s = o.world.config.Wrap(o.self, to, s)
	}
	return s, nil
}

func (o opener) pair(to view.Process) (channel.Sender, channel.Receiver, error) {
	switch {
	case o.world.config.Rings:
		return rings(o.world.bells[o.self], o.world.bells[to], o.world.config.Reading)
	case o.world.config.Sockets:
		return pipes()
	}
	s, r := channel.Self()
	return s, r, nil
}

// rings returns the ends of a channel through shared memory.
func rings(own, other *channel.Bell, reading channel.Reading) (channel.Sender, channel.Receiver, error) {
	f, err := channel.NewRing(channel.RingCapacity)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	s, err := channel.OpenShmSender(f, own, other)
	if err != nil {
		return nil, nil, err
	}
	r, err := channel.OpenShmReceiver(f, other, own)
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	r.SetReading(reading)
	return s, r, nil
}

// pipes returns the ends of a stream channel.
func pipes() (channel.Sender, channel.Receiver, error) {
	out, in, err := channel.LocalPipe()
	if err != nil {
		return nil, nil, err
	}
	return channel.NewPipeSender(out), channel.NewStreamReceiver(in), nil
}

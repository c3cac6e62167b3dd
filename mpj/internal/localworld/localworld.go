package localworld

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/replication"
)

// A Config describes a job.
type Config struct {
	Ranks    int
	Replicas int
	Sockets  bool // connect processes with socket pairs
	Rings    bool // connect processes through shared memory
	// Reading says whether receivers of rings read long payloads where they are.
	// All are in this process, so without ReadAny they do not.
	Reading channel.Reading
	// Wrap, if not nil, returns what is used in place of the writing end of a new
	// channel. Tests break channels with it, and count what goes where.
	Wrap func(from, to view.Process, s channel.Sender) channel.Sender
	// Diverged, if not nil, is told what process p says about messages that replicas
	// have not produced alike, in place of ending the job.
	Diverged func(p view.Process, d protection.Divergence)
}

// A World is a job in this process.
type World struct {
	config  Config
	engines map[view.Process]*engine.Engine
	bells   map[view.Process]*channel.Bell // with Rings

	mu     sync.Mutex
	view   view.View
	failed error // why the job has ended before its time
}

// New returns a job whose processes are ready to start. It ends early when ctx
// does.
func New(ctx context.Context, c Config) *World {
	w := &World{config: c, engines: make(map[view.Process]*engine.Engine), view: view.New(c.Ranks, c.Replicas)}
	if c.Rings {
		var err error
		if w.bells, err = hangBells(w.view.Processes()); err != nil {
			w.config.Rings = false // what Open needs is not there either
			w.failed = err
		}
	}
	start := time.Now()
	for _, p := range w.view.Processes() {
		config := engine.Config{
			Self: p, View: w.view, Protocol: Protect(p, w.view), Opener: opener{w, p},
			Clock:    func() time.Duration { return time.Since(start) },
			Crowded:  c.Ranks*c.Replicas > runtime.NumCPU(),
			Diverged: func(d protection.Divergence) { w.diverged(p, d) },
		}
		if bell := w.bells[p]; bell != nil {
			config.Bell = bell
		}
		w.engines[p] = engine.New(ctx, config)
	}
	return w
}

// hangBells returns a bell for each process.
func hangBells(processes []view.Process) (map[view.Process]*channel.Bell, error) {
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

// Ranks returns n.
func (w *World) Ranks() int { return w.config.Ranks }

// Protect returns the protocol for a process of a job with view v: none when
// there are no replicas.
func Protect(self view.Process, v view.View) protection.Protocol {
	if v.R == 1 {
		return nil
	}
	var secret replication.Secret
	rand.Read(secret[:]) // never fails
	return replication.New(self, v, secret)
}

// Run runs program as every process, and returns when all have returned. The
// first error of a process that has not been killed ends the job and is
// returned.
func (w *World) Run(program func(view.Process, *engine.Engine) error) error {
	var running sync.WaitGroup
	for p, e := range w.engines {
		running.Go(func() {
			defer e.Close()
			if err := program(p, e); err != nil && !w.killed(p) {
				w.Fail(fmt.Errorf("rank %d: %w", p.Rank, err))
			}
		})
	}
	running.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

// Fail ends the job with err, unless it has ended with another one before.
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
	for _, e := range w.engines {
		e.Fail(fmt.Errorf("job has ended: %w", err))
	}
}

// Finish says that process p has finalized.
func (w *World) Finish(p view.Process) { w.change(p, view.Finished) }

// Kill ends process p as a crash does: what its channels have taken may or may
// not arrive. The job fails when its rank then has no replica left.
func (w *World) Kill(p view.Process) {
	w.change(p, view.Failed)
	w.engines[p].Fail(errors.New("killed"))
	w.mu.Lock()
	v := w.view
	w.mu.Unlock()
	for k := range v.R {
		if v.State(view.Process{Rank: p.Rank, Replica: k}) != view.Failed {
			return
		}
	}
	w.Fail(fmt.Errorf("rank %d has lost all its replicas", p.Rank))
}

// diverged ends the job: in one process nothing but the program can be at fault.
func (w *World) diverged(p view.Process, d protection.Divergence) {
	if w.config.Diverged != nil {
		w.config.Diverged(p, d)
	} else if d.Differs() {
		w.Fail(fmt.Errorf("replica %d of rank %d has diverged: %v", p.Replica, p.Rank, d))
	}
}

func (w *World) killed(p view.Process) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view.State(p) == view.Failed
}

// change makes the next view and tells it to all. Views may overtake each other
// on the way; engines drop the older.
func (w *World) change(p view.Process, s view.State) {
	w.mu.Lock()
	next, changed := w.view.With(p, s)
	w.view = next
	w.mu.Unlock()
	if !changed {
		return
	}
	for _, e := range w.engines {
		e.View(next)
	}
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
	o.world.engines[to].Accept(o.self, r)
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

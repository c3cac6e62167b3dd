package localworld

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
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
	// Wrap, if not nil, returns what is used in place of a new channel's
	// writing end. Tests break channels with it.
	Wrap func(channel.Sender) channel.Sender
}

// A World is a job in this process.
type World struct {
	config  Config
	engines map[view.Process]*engine.Engine

	mu     sync.Mutex
	view   view.View
	failed error // why the job has ended before its time
}

// New returns a job whose processes are ready to start. It ends early when ctx
// does.
func New(ctx context.Context, c Config) *World {
	w := &World{config: c, engines: make(map[view.Process]*engine.Engine), view: view.New(c.Ranks, c.Replicas)}
	start := time.Now()
	for _, p := range w.view.Processes() {
		w.engines[p] = engine.New(ctx, engine.Config{
			Self: p, View: w.view, Protocol: Protect(p, w.view), Opener: opener{w, p},
			Clock: func() time.Duration { return time.Since(start) },
		})
	}
	return w
}

// Ranks returns n.
func (w *World) Ranks() int { return w.config.Ranks }

// Protect returns the protocol for a process of a job with view v: none when
// there are no replicas.
func Protect(self view.Process, v view.View) protection.Protocol {
	if v.R == 1 {
		return nil
	}
	return replication.New(self, v)
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
	s, r := channel.Self()
	if o.world.config.Sockets {
		var err error
		if s, r, err = sockets(); err != nil {
			return nil, err
		}
	}
	o.world.engines[to].Accept(o.self, r)
	if o.world.config.Wrap != nil {
		s = o.world.config.Wrap(s)
	}
	return s, nil
}

// sockets returns the ends of a stream channel.
func sockets() (channel.Sender, channel.Receiver, error) {
	a, b, err := proclink.SocketPair()
	if err != nil {
		return nil, nil, err
	}
	defer a.Close()
	defer b.Close()
	out, err := channel.FromFile(a)
	if err != nil {
		return nil, nil, err
	}
	in, err := channel.FromFile(b)
	if err != nil {
		out.Close()
		return nil, nil, err
	}
	return channel.NewStreamSender(out), channel.NewStreamReceiver(in), nil
}

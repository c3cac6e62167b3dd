package mpj

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/link"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// Init joins the job that this process was started for, and returns when every
// process of the job has called it. A program that was started by hand, not by
// a peer, gets a world of one rank.
//
// The communication functions take no context of their own: when ctx ends, all
// that are blocked, in every communicator, return an error that wraps its
// cause. A process calls Init once.
func Init(ctx context.Context) (*World, error) {
	if !wireMachine() {
		return nil, failf(ErrOther, "Init", "machines that are not little-endian with 64-bit int are not supported yet")
	}
	checks, err := checksWanted()
	if err != nil {
		return nil, err
	}
	inherited, ok := os.LookupEnv(proclink.FDVariable)
	var w *World
	if !ok {
		w = alone(ctx)
	} else if w, err = join(ctx, inherited); err != nil {
		return nil, &Error{Class: ErrOther, Op: "Init", Rank: Undefined, Err: err}
	}
	if checks {
		w.detect(0)
	}
	return w, nil
}

// joined takes the place of the descriptor's number, so that neither a second
// Init nor a child process uses it.
const joined = "joined"

// join joins the job over the inherited descriptor.
func join(ctx context.Context, inherited string) (*World, error) {
	if inherited == joined {
		return nil, fmt.Errorf("this process has joined its job already")
	}
	fd, err := strconv.ParseUint(inherited, 10, 31)
	if err != nil {
		return nil, fmt.Errorf("%s is no descriptor: %w", proclink.FDVariable, err)
	}
	if err := os.Setenv(proclink.FDVariable, joined); err != nil {
		return nil, err
	}
	l, err := link.Dial(os.NewFile(uintptr(fd), "line to the peer"))
	if err != nil {
		return nil, err
	}
	oneMoreProcessor()
	self, v := l.Self(), l.View()
	config := engineConfig(self, v, l.Joining(), l)
	config.Diverged, config.Ahead = l.Diverged, l.Ahead
	config.Joined, config.Unkept = l.Joined, l.Unkept
	if l.Heal() {
		if config.Past, err = engine.NewPast(".", pastLimit); err != nil {
			l.Unkept(err.Error(), true) // the job goes on without
		}
	}
	if bell := l.Bell(); bell != nil {
		config.Bell, config.Crowded = bell, l.Crowded()
	}
	e := engine.New(ctx, config)
	l.Serve(e, exit)
	if err := l.Start(ctx); err != nil {
		e.Close()
		l.Close()
		return nil, err
	}
	e.Bear(l.Bears())
	w := newWorld(e, self, v.N, peerJob{l})
	for _, p := range l.Places() {
		w.places = append(w.places, place{machine: p[0], cluster: p[1]})
	}
	return w, nil
}

// oneMoreProcessor lets Go run one goroutine more at a time than there are
// processors, unless GOMAXPROCS in the environment says how many. A goroutine that
// computes holds one of them for 10 ms at a time, while those that make progress
// come and go: with one for each processor, it waits for its own again behind them,
// in Go's queue, whatever the system's scheduler could do. That cost a fifth to a
// half of the overlap of a 64 MiB transfer over TCP. Two more cost latency.
func oneMoreProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}

// pastLimit bounds what a process keeps for new replicas of its rank, in bytes.
const pastLimit = 1 << 30

// engineConfig returns what every engine has. joining says that self is new in a rank
// that runs.
func engineConfig(self view.Process, v view.View, joining bool, o channel.Opener) engine.Config {
	start := time.Now()
	return engine.Config{
		Self: self, View: v, Protocol: localworld.Protect(self, v, joining), Opener: o,
		Clock: func() time.Duration { return time.Since(start) },
	}
}

// exitLost is the status of a process whose peer is gone.
const exitLost = 70

// exit ends the process because its peer is gone: nobody limits it any more and
// nobody waits for what it computes.
func exit(err error) {
	fmt.Fprintln(os.Stderr, "mpj: this process ends with its peer:", err)
	os.Exit(exitLost)
}

// peerJob is the job of the peer at the other end of the line.
type peerJob struct{ *link.Link }

// Abort implements job. The peer ends this process.
func (j peerJob) Abort(code int, reason string) {
	if err := j.Link.Abort(code, reason); err != nil {
		exit(err)
	}
	select {}
}

// alone returns the world of a program that was started by hand.
func alone(ctx context.Context) *World {
	self, v := view.Process{}, view.New(1, 1)
	return newWorld(engine.New(ctx, engineConfig(self, v, false, nil)), self, 1, aloneJob{})
}

// aloneJob is a job that is nothing but this process.
type aloneJob struct{}

func (aloneJob) Finalize(context.Context, []protection.Sum, bool) error { return nil }
func (aloneJob) Printed() ([2]uint64, bool)                             { return [2]uint64{}, false }
func (aloneJob) Skip([2]uint64) error                                   { return nil }
func (aloneJob) Close()                                                 {}

func (aloneJob) Abort(code int, reason string) {
	fmt.Fprintln(os.Stderr, "mpj: abort:", reason)
	os.Exit(code)
}

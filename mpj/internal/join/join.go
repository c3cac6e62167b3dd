package join

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
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine/direct"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine/protected"
	"github.com/p2pmpi/p2pmpi/mpj/internal/link"
	"github.com/p2pmpi/p2pmpi/mpj/internal/messagelog"
	"github.com/p2pmpi/p2pmpi/mpj/internal/protect"
)

// joined replaces the descriptor number in the environment, so that neither a second Init nor a
// child process uses it.
const joined = "joined"

// Inherited reports whether this process was started for a job, joined or not.
func Inherited() bool {
	_, ok := os.LookupEnv(proclink.FDVariable)
	return ok
}

// Job joins the job over the inherited descriptor, once. If the control socket ends before the job,
// Job calls lost, which does not return.
func Job(ctx context.Context, lost func(error)) (*engine.Engine, *link.Link, error) {
	oneMoreProcessor()
	l, err := dial()
	if err != nil {
		return nil, nil, err
	}
	self, v := l.Self(), l.View()
	config := Config(self, v, l)
	if protocol := protect.For(self, v, l.Joining()); protocol != nil {
		config.Transport = protected.New(protectedConfig(protocol, l))
	}
	if bell := l.Bell(); bell != nil {
		config.Bell, config.Crowded = bell, l.Crowded()
	}
	e := engine.New(ctx, config)
	l.Serve(e, lost)
	if err := l.Start(ctx); err != nil {
		e.Close()
		l.Close()
		return nil, nil, err
	}
	e.SetToleratedHang(l.ToleratedHang())
	return e, l, nil
}

func dial() (*link.Link, error) {
	inherited := os.Getenv(proclink.FDVariable)
	if inherited == joined {
		return nil, fmt.Errorf("this process has joined its job already")
	}
	fd, err := strconv.ParseUint(inherited, 10, 31)
	if err != nil {
		return nil, fmt.Errorf("%s is not a file descriptor: %w", proclink.FDVariable, err)
	}
	if err := os.Setenv(proclink.FDVariable, joined); err != nil {
		return nil, err
	}
	return link.Dial(os.NewFile(uintptr(fd), "control socket"))
}

// oneMoreProcessor raises GOMAXPROCS to one more than the number of processors, unless the
// environment sets it. A computing goroutine keeps a processor for 10 ms at a time, while goroutines
// that make progress run briefly and often. With GOMAXPROCS equal to the number of processors, the
// computing goroutine waits behind them in Go's run queue, and the system's scheduler cannot help.
// Measured with a 64 MiB transfer over TCP, this cost between a fifth and a half of the overlap. Two
// additional processors would cost latency.
func oneMoreProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}

// Config returns the common configuration of engines, without replicas.
func Config(self view.Process, v view.View, o channel.Opener) engine.Config {
	start := time.Now()
	return engine.Config{
		Self: self, View: v, Transport: direct.New, Opener: o,
		Clock: func() time.Duration { return time.Since(start) },
	}
}

// protectedConfig returns the configuration of the transport of a process with replicas.
func protectedConfig(protocol protection.Protocol, l *link.Link) protected.Config {
	c := protected.Config{
		Protocol: protocol, Diverged: l.Diverged, Ahead: l.Ahead, Stalled: l.Stalled, UpToDate: l.UpToDate,
		Joined: l.Joined, LogDropped: l.LogDropped,
	}
	if l.Heal() {
		var err error
		if c.Log, err = messagelog.New(".", protect.LogLimit); err != nil {
			l.LogDropped(err.Error(), true) // the job continues without the log
		}
	}
	return c
}

// ExitLost is the exit status of a process that has lost its peer.
const ExitLost = 70

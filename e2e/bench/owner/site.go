package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/grid"
)

// A site is the owner's machine, with a peer with default options and one whose jobs have a lower niceness.
type site struct {
	dir   string
	peer  *grid.Grid // with default options
	less  *grid.Grid
	loads []load

	builds int // number of builds so far
}

func openSite(ctx context.Context, niceness int) (s *site, err error) {
	dir, err := os.MkdirTemp("", "p2pmpi-owner-")
	if err != nil {
		return nil, err
	}
	s = &site{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := grid.Build(ctx, dir, append(grid.Commands, "e2e/programs/stepper")...); err != nil {
		return s, err
	}
	if s.peer, err = grid.Boot(ctx, dir, filepath.Join(dir, usual), 1, runtime.NumCPU()); err != nil {
		return s, err
	}
	less := strconv.Itoa(niceness)
	s.less, err = grid.Boot(ctx, dir, filepath.Join(dir, "less"), 1, runtime.NumCPU(), "--niceness", less)
	s.loads = []load{
		{alone, false, func(context.Context) (func() error, error) { return func() error { return nil }, nil }},
		{"a job", false, func(ctx context.Context) (func() error, error) { return s.job(ctx, s.peer) }},
		{"niceness " + less, false, func(ctx context.Context) (func() error, error) { return s.job(ctx, s.less) }},
		{"no peer", true, func(ctx context.Context) (func() error, error) {
			c, err := compute(ctx, runtime.NumCPU())
			return func() error { c.stop(); return nil }, err
		}},
	}
	return s, err
}

// usual is the directory with the home of the default peer.
const usual = "usual"

func (s *site) close() (err error) {
	for _, g := range []*grid.Grid{s.peer, s.less} {
		if g != nil {
			err = errors.Join(err, g.Close())
		}
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// A load is the work of the machine beside a build. begin returns once the load runs, and end once it has ended.
type load struct {
	name  string
	rare  bool // not measured in every round
	begin func(context.Context) (end func() error, err error)
}

const alone = "alone"

// during builds under the load w.
func (s *site) during(ctx context.Context, w load) (b build, err error) {
	end, err := w.begin(ctx)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, end()) }()
	return s.build(ctx)
}

// edited is the pattern of packages that take some seconds to build, as after an edit. A longer build would allow
// fewer repetitions.
const edited = "go/..."

// build is the owner's work. The dependencies of the edited packages stay in the cache after the
// first build.
func (s *site) build(ctx context.Context) (b build, err error) {
	s.builds++
	again := fmt.Sprintf("-gcflags=%s=-trimpath=%d", edited, s.builds) // forces a recompilation
	cmd := exec.CommandContext(ctx, "go", "build", again, edited)
	cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(s.dir, "gocache"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return b, fmt.Errorf("build: %w\n%s", err, out)
	}
	b.took = time.Since(begun).Seconds()
	b.used = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return b, nil
}

// job runs a computing rank in each slot, and returns once all run. end cancels the job, and
// returns an error if it had ended before.
func (s *site) job(ctx context.Context, at *grid.Grid) (end func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	wait, err := s.submit(ctx, at, time.Hour)
	if err != nil {
		cancel()
		return nil, err
	}
	return func() error {
		cancel()
		err := wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 130 {
			return nil
		}
		return fmt.Errorf("the job ended by itself: %w", err)
	}, nil
}

// submit runs stepper with p2prun, and returns once the ranks run.
func (s *site) submit(ctx context.Context, at *grid.Grid, length time.Duration) (wait func() error, err error) {
	cmd := at.Command(ctx, "--json", "-n", strconv.Itoa(runtime.NumCPU()),
		filepath.Join(s.dir, "stepper"), "-work", "100ms", "-every", "100", "-for", length.String())
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var all bytes.Buffer
	runs, heard := make(chan struct{}), make(chan struct{})
	go func() { // ends with p2prun
		defer close(heard)
		for lines, began := bufio.NewScanner(said), false; lines.Scan(); {
			fmt.Fprintln(&all, lines.Text())
			if !began && strings.Contains(lines.Text(), `"phase":"running"`) {
				began = true
				close(runs)
			}
		}
	}()
	wait = func() error {
		<-heard
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("p2prun: %w\n%s", err, &all)
		}
		return nil
	}
	select {
	case <-runs:
		return wait, nil
	case <-heard:
		return nil, fmt.Errorf("the job does not start: %w", wait())
	}
}

// starve occupies all processors with a number of the owner's processes for a while. A job runs meanwhile and
// ends afterwards. starve returns the job's share of the processor time of both.
func (s *site) starve(ctx context.Context, crowd int, while time.Duration) (part float64, err error) {
	wait, err := s.submit(ctx, s.peer, while)
	if err != nil {
		return 0, err
	}
	before, err1 := s.used(ctx)
	c, err2 := compute(ctx, crowd)
	select {
	case <-time.After(while):
	case <-ctx.Done():
	}
	after, err3 := s.used(ctx)
	owners, jobs := c.stop(), after-before
	return float64(jobs) / float64(jobs+owners), errors.Join(err1, err2, err3, wait())
}

// used returns the processor time that the job has used.
func (s *site) used(ctx context.Context) (time.Duration, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(s.dir, "p2pboot"), "jobs", "--json", "--home", filepath.Join(s.dir, usual, "peer0")).Output()
	var hosted []struct{ Use struct{ CPU time.Duration } }
	if err == nil {
		err = json.Unmarshal(out, &hosted)
	}
	if err != nil || len(hosted) != 1 {
		return 0, fmt.Errorf("read the job's processor time: %d jobs, %w", len(hosted), err)
	}
	return hosted[0].Use.CPU, nil
}

// spinning as the only argument makes this program compute forever.
const spinning = "-spin"

func spin() {
	for n := 0; ; n++ { // endless loop
	}
}

// A crowd is a number of spinning processes, each in its own session.
type crowd []*exec.Cmd

func compute(ctx context.Context, n int) (c crowd, err error) {
	self, err := os.Executable()
	for range n {
		cmd := exec.CommandContext(ctx, self, spinning)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err = errors.Join(err, cmd.Start()); err != nil {
			break
		}
		c = append(c, cmd)
	}
	return c, err
}

// stop kills the processes, and returns the processor time that they have used.
func (c crowd) stop() (sum time.Duration) {
	for _, cmd := range c {
		cmd.Process.Kill()
	}
	for _, cmd := range c {
		cmd.Wait() // the error only reports that it was killed
		sum += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return sum
}

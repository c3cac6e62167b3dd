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

// module is the import path of all that is built.
const module = "github.com/p2pmpi/p2pmpi/"

// A site is the owner's machine, with a peer of the default options, and one that gives way less.
type site struct {
	dir  string
	peer *grid.Grid // of the default options
	less *grid.Grid
	ways []way

	builds int // so far
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
	if err := grid.Build(ctx, dir, append(grid.Commands, module+"e2e/programs/stepper")...); err != nil {
		return s, err
	}
	if s.peer, err = grid.Boot(ctx, dir, filepath.Join(dir, usual), 1, runtime.NumCPU()); err != nil {
		return s, err
	}
	less := strconv.Itoa(niceness)
	s.less, err = grid.Boot(ctx, dir, filepath.Join(dir, "less"), 1, runtime.NumCPU(), "--niceness", less)
	s.ways = []way{
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

// usual is the folder of the homes of the peer with its defaults.
const usual = "usual"

func (s *site) close() (err error) {
	for _, g := range []*grid.Grid{s.peer, s.less} {
		if g != nil {
			err = errors.Join(err, g.Close())
		}
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// A way is what else the machine does during a build. begin returns once it does, and end when it
// does no more.
type way struct {
	name  string
	rare  bool // not in each round
	begin func(context.Context) (end func() error, err error)
}

const alone = "alone"

// during builds while something else goes on.
func (s *site) during(ctx context.Context, w way) (b build, err error) {
	end, err := w.begin(ctx)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, end()) }()
	return s.build(ctx)
}

// edited are packages that take some seconds, as when somebody has edited them: a longer build would
// be repeated less often.
const edited = "go/..."

// build is the owner's work. What the edited packages need is there from the first time on.
func (s *site) build(ctx context.Context) (b build, err error) {
	s.builds++
	again := fmt.Sprintf("-gcflags=%s=-trimpath=%d", edited, s.builds) // so that they are compiled again
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

// job has a rank compute in each slot, and returns once they do. It is cancelled in the end, and
// has to be there still.
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
		return fmt.Errorf("the job has ended by itself: %w", err)
	}, nil
}

// submit has p2prun run stepper, and returns once the ranks run.
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
		return nil, fmt.Errorf("the job does not run: %w", wait())
	}
}

// starve has the owner need all processors for a while, for so many processes, during which a job
// goes on that ends after it. It returns which part of the time of both the job had.
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

// used returns the processor time that the job has had.
func (s *site) used(ctx context.Context) (time.Duration, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(s.dir, "p2pboot"), "jobs", "--json", "--home", filepath.Join(s.dir, usual, "peer0")).Output()
	var hosted []struct{ Use struct{ CPU time.Duration } }
	if err == nil {
		err = json.Unmarshal(out, &hosted)
	}
	if err != nil || len(hosted) != 1 {
		return 0, fmt.Errorf("what the job has had: %d jobs, %w", len(hosted), err)
	}
	return hosted[0].Use.CPU, nil
}

// spinning as the only argument makes this program compute for ever.
const spinning = "-spin"

func spin() {
	for n := 0; ; n++ { // that is all
	}
}

// A crowd is some processes that do that, each in a session of its own.
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

// stop ends them, and returns the processor time that they have had.
func (c crowd) stop() (sum time.Duration) {
	for _, cmd := range c {
		cmd.Process.Kill()
	}
	for _, cmd := range c {
		cmd.Wait() // it says that it was killed
		sum += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return sum
}

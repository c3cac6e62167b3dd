package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/scratch"
	"github.com/p2pmpi/p2pmpi/peer/launch/module/wasm"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/proc"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

// CheckModule returns an error if no peer can run the WebAssembly module.
func CheckModule(ctx context.Context, module []byte) error { return wasm.Check(ctx, module) }

// A compiler replaces the module of a job by its compiled form.
type compiler struct {
	modules     *wasm.Store
	spec        *jobspec.Spec
	digest      string // digest of the module
	confinement *confinement
	command     supervisor.Command // command of the process that compiles, without the module and its limits
	log         zerolog.Logger
}

// moduleConfig returns the configuration of the job's module for its runners.
func (c *confinement) moduleConfig(spec *jobspec.Spec) wasm.Config {
	slot := c.grant.Slot
	return wasm.Config{
		Created: spec.Created, Memory: uint64(max(slot.Memory, 0)),
		Disk: slot.Disk, Name: scratch.LeastEntry(string(c.folder)),
	}
}

// runModule makes a command run a job's module for a process.
func (e Engine) runModule(c *supervisor.Command, module string, spec *jobspec.Spec, config wasm.Config, p view.Process) {
	config.Seed = fmt.Sprintf("%s rank %d", spec.ID, p.Rank)
	c.Program, c.As, c.Stdin = e.program, wasm.Name, module
	c.Args = config.Arguments(append([]string{spec.Name}, spec.Args...))
}

// newCompiler returns the compiler of a job's module. digest is the digest of the module.
func newCompiler(s *Service, spec *jobspec.Spec, digest string, confinement *confinement, log zerolog.Logger) *compiler {
	config := confinement.moduleConfig(spec)
	config.Compile = true
	return &compiler{
		modules: s.modules, spec: spec, digest: digest, confinement: confinement, log: log,
		command: supervisor.Command{
			Title:   "job " + spec.ID + " compiler",
			Program: s.config.Engine.program, As: wasm.Name, Scratch: confinement.folder.Compile(), Sandbox: s.config.Sandbox.Means,
			Args: config.Arguments(nil), Session: s.session, Answered: func(bool) {},
		},
	}
}

// bring replaces the module in a file by its compiled form. The job needs its own copy: the store may evict the
// compiled module before the job has started all its processes.
func (c *compiler) bring(ctx context.Context, module string) error {
	taken, err := c.modules.Take(c.digest, module)
	if err != nil || taken {
		return err
	}
	unlock, err := c.modules.Lock(ctx, c.digest)
	if err != nil {
		return err
	}
	defer unlock()
	if taken, err = c.modules.Take(c.digest, module); err != nil || taken {
		return err
	}
	if err := c.compile(ctx, module); err != nil {
		return err
	}
	if taken, err = c.modules.Take(c.digest, module); err == nil && !taken {
		err = errors.New("the module was removed during its compilation: try again")
	}
	return err
}

// compileTimeout bounds the compilation of a module; large modules take seconds. Time in which the owner's
// own work leaves the compiler no processor does not count, up to starvedMost. The guard does not watch
// compilers. The kernel limits a compiler's memory, processors and the size of its one file.
const (
	compileTimeout = 2 * time.Minute
	starvedMost    = 10 * time.Minute
)

// compile compiles the module and adds the result to the store. The compiler runs alone in the job's control
// group, which is created again for the processes.
func (c *compiler) compile(ctx context.Context, module string) error {
	command := c.command
	if err := os.Mkdir(command.Scratch, 0o700); err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	var group *cgroup.Group
	defer func() {
		if err := c.confinement.removeGroups(group); err != nil {
			c.log.Error().Err(err).Msg("control group not removed")
		}
		c.confinement.group = nil // no process uses it yet
	}()
	err := c.confinement.makeGroup()
	if err == nil {
		group, command.Limits, err = c.confinement.confine("compiler")
	}
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	command.Stdin = module
	said, program, err := startRunner(command)
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	defer program.Close() // removes the folder
	timeout := compileTimeout
	if most := c.confinement.grant.Slot.Time; most > 0 {
		timeout = min(timeout, most)
	}
	var watching sync.WaitGroup
	over, stop := context.WithCancel(ctx)
	watching.Go(func() { c.watch(over, &instance{program: program, group: group}, allowance{timeout, starvedMost}) })
	defer watching.Wait()
	defer stop()
	words := make(chan []byte, 1)
	go func() { words <- readSome(said) }() // ends with the compiler
	exit := program.Wait()
	if exit.Code != 0 {
		last := <-words
		if x, exceeded := c.exceeds(group, last); exceeded {
			return fmt.Errorf("compile %s: its compiler %v", c.spec.Name, x)
		}
		return fmt.Errorf("compile %s: %w", c.spec.Name, why(exit, last, timeout))
	}
	return c.modules.Add(c.digest, module, command.Scratch)
}

// watch waits until the program has ended or used up its allowance, and then kills it.
func (c *compiler) watch(over context.Context, program *instance, may allowance) {
	var census supervisor.Census
	look := func() proc.CPUStats {
		return proc.CPUStatsOf(processesOf(&census, []*instance{program})[program], time.Now())
	}
	for before := look(); may.left > 0 && over.Err() == nil; {
		select {
		case <-time.After(max(min(may.left, tickPeriod), tickPeriod/4)):
			now := look()
			may.spend(before, now)
			before = now
		case <-over.Done():
		}
	}
	program.program.Kill()
	c.confinement.raisePriority()
}

// An allowance is the time that a compiler may still take, and how much starvation is excused on top of
// that.
type allowance struct{ left, starved time.Duration }

// spend subtracts the time since before, except the time without a processor, as far as that is excused.
func (a *allowance) spend(before, now proc.CPUStats) {
	excused := min(now.WaitSince(before), a.starved)
	a.starved -= excused
	a.left -= now.At.Sub(before.At) - excused
}

// exceeds reports whether the compiler failed for lack of memory. Either the kernel killed it in
// its group, which may be nil, or refused it more memory, as its last output states.
func (c *compiler) exceeds(group *cgroup.Group, words []byte) (limits.Excess, bool) {
	var u limits.Usage
	if group != nil {
		u = c.confinement.refusals(group)
		u.Refused, u.Processes = false, 0
	}
	if c.confinement.groups.Missing(cgroup.Memory) != nil {
		u.Killed, u.Memory = noMemory.Match(words), 0
	}
	return c.confinement.grant.Exceeded(u)
}

// noMemory matches the output of a runtime that runs out of memory: several forms for Go, one for Rust.
var noMemory = regexp.MustCompile(`(?m)^(fatal error|runtime): .*(out of memory|cannot (allocate|map|remap) |failed to (allocate|reserve) )|memory allocation of [0-9]+ bytes failed`)

// startRunner starts a runner that takes part in no job. Its output can be read from said.
func startRunner(c supervisor.Command) (said *os.File, _ *supervisor.Process, err error) {
	line, inherited, err := proclink.Pair()
	if err != nil {
		return nil, nil, err
	}
	defer line.Close()
	defer inherited.Close()
	said, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer write.Close()
	c.Socket, c.Stdout, c.Stderr = inherited, write, write
	runner, err := supervisor.Start(c)
	if err != nil {
		said.Close()
	}
	return said, runner, err
}

// maxReported bounds the part of a compiler's output that is reported, in bytes.
const maxReported = 1 << 10

// readSome reads f to the end, and returns the first maxReported bytes.
func readSome(f *os.File) []byte {
	defer f.Close()
	all := make([]byte, 0, maxReported)
	for b := make([]byte, maxReported); ; {
		n, err := f.Read(b)
		all = append(all, b[:min(n, maxReported-len(all))]...)
		if err != nil {
			return bytes.TrimSpace(all)
		}
	}
}

// why returns an error that describes how a compiler failed.
func why(e supervisor.Exit, words []byte, timeout time.Duration) error {
	switch {
	case e.Signal != "":
		return fmt.Errorf("its compiler was killed (%s) within %v", e.Signal, timeout)
	case len(words) == 0:
		return fmt.Errorf("its compiler ended with status %d", e.Code)
	}
	return errors.New(string(words))
}

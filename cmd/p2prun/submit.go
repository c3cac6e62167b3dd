package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/cmd/internal/display"
	"github.com/p2pmpi/p2pmpi/cmd/internal/inputs"
	"github.com/p2pmpi/p2pmpi/cmd/internal/program"
	"github.com/p2pmpi/p2pmpi/cmd/internal/workdir"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// A submission is one job: the user's request, and the executables prepared for the peers.
type submission struct {
	opt  peer.RunOptions
	prog *program.Program
	here []submit.Platform // platforms for which the program is built before any peer is asked
	req  submit.Request

	built string // folder of the built executables
	show  *display.Display
	out   []*command.Output // outputs that show writes to
}

// submitJob runs one job and returns its exit status. An error is a failure that has not been reported yet;
// unless the error is a command.Failure with another status, it counts as a usage error.
func submitJob(ctx context.Context, cfg peer.Config, opt peer.RunOptions, args []string, stdout, stderr *command.Output) (int, error) {
	j, err := prepare(ctx, cfg, opt, args)
	if err != nil {
		return 0, err
	}
	work, err := workdir.New()
	if err != nil {
		return 0, command.Fail(command.Unavailable, err, "set TMPDIR to a directory with free space")
	}
	defer work.Close()
	if j.built, err = work.Sub("build"); err != nil {
		return 0, command.Fail(command.Unavailable, err, "")
	}
	j.show = display.New(display.Config{
		Name: "p2prun", Stdout: stdout, Stderr: stderr,
		Ranks: opt.Ranks, Replicas: j.req.R, Tag: opt.TagOutput, JSON: opt.JSON,
	})
	j.out = []*command.Output{stdout, stderr}
	defer j.show.Close()
	// This machine's platform is built first, so that mistakes are found before any peer is asked.
	if j.prog.Portable() {
		j.show.Say("building %s", args[0])
	}
	if j.req.Programs, err = build(ctx, j.prog, j.here, j.built); err != nil {
		return 0, err
	}
	if warning := cfg.NetworkChoice().OpenWarning(); warning != "" && opt.Local == 0 {
		j.show.Say("warning: %s", warning)
	}
	s, err := open(ctx, cfg, opt, work, stderr)
	if err != nil {
		return 0, err
	}
	defer s.close()
	return j.execute(ctx, s)
}

// prepare validates the user's request as far as this is possible without building and without peers.
func prepare(ctx context.Context, cfg peer.Config, opt peer.RunOptions, args []string) (*submission, error) {
	req, err := request(cfg, opt, args)
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return nil, command.Fail(command.Usage, err, hintHelp)
	}
	var here []submit.Platform
	prog, err := program.Find(ctx, args[0])
	if err == nil {
		here, err = platforms(opt, prog)
	}
	if err != nil {
		return nil, command.Fail(command.Usage, err, "")
	}
	req.Name = prog.Name
	prog.TrimPath = opt.Local == 0 // the executable of a local job does not leave this machine
	return &submission{opt: opt, prog: prog, here: here, req: req}, nil
}

// execute runs the job in a session and returns its exit status, as submit does.
func (j *submission) execute(ctx context.Context, s *session) (int, error) {
	if j.opt.OnlyMine {
		if err := s.mine(ctx, &j.req.Filter); err != nil {
			return 0, err
		}
	}
	if err := j.buildForPeers(ctx, s); err != nil {
		return 0, err
	}
	if j.opt.Replicas == peer.AutoReplicas {
		if lacking, err := j.chooseReplicas(ctx, s); err != nil || lacking != nil {
			return finish(s, j.show, lacking), err
		}
	}
	result, err := j.run(ctx, s)
	if err == nil && wantModule(j.opt, j.prog, result) {
		result, err = j.runAsModule(ctx, s)
	}
	if err != nil {
		return 0, err
	}
	return finish(s, j.show, &result), nil
}

// run runs the job with the built programs and returns its result.
func (j *submission) run(ctx context.Context, s *session) (job.Result, error) {
	if j.req.Timeout > 0 {
		late := time.AfterFunc(j.req.Timeout, func() { interrupt(j.out...) })
		defer late.Stop()
	}
	r, err := s.run(ctx, j.req, watchdog(s, j.opt.Lose, j.req, j.show))
	if errors.Is(err, command.ErrUnread) && ctx.Err() == nil {
		return job.Result{Status: job.StatusTimeout, Message: fmt.Sprintf("--timeout ended the job after %v: %v", j.req.Timeout, err)}, nil
	}
	if err != nil {
		return r, failure(ctx, err)
	}
	return r, nil
}

// finish shows the result of a job.
func finish(s *session, show *display.Display, result *job.Result) int {
	if result == nil {
		return 0
	}
	s.explain(result)
	show.Result(*result)
	return result.Status
}

// request converts the options to a submit.Request, without the program.
func request(cfg peer.Config, opt peer.RunOptions, args []string) (submit.Request, error) {
	if len(args) == 0 {
		return submit.Request{}, errors.New("no PROGRAM given")
	}
	cwd, err := os.Getwd()
	if err != nil {
		return submit.Request{}, fmt.Errorf("find the current folder: %w", err)
	}
	req := submit.Request{
		Name: args[0], Args: args[1:], Settings: proclink.Settings(os.Getenv),
		N: opt.Ranks, R: int(opt.Replicas), Strategy: opt.Strategy, DryRun: opt.DryRun,
		Outputs: opt.Outputs, OutputDir: cwd, NewFolder: opt.OutputDir == "", Executable: opt.Executable,
		Channels: cfg.Channels, Explain: opt.Verbose, OnDivergence: opt.OnDivergence, Heal: opt.Heal == peer.On,
		Wait: time.Duration(opt.Wait) * time.Second, Timeout: opt.Timeout, Away: opt.Away,
	}
	if opt.OutputDir != "" {
		if req.OutputDir, err = filepath.Abs(opt.OutputDir); err != nil {
			return submit.Request{}, fmt.Errorf("--output-dir: %w", err)
		}
	}
	var errFilter error
	req.Filter, errFilter = opt.Filter()
	if opt.Replicas == peer.AutoReplicas {
		req.R = 1 // until peers are found
	}
	// The program is not known yet; everything else can be validated now.
	trial := req
	trial.Programs = []submit.Executable{{Platform: program.Local, Path: cwd}}
	if err := errors.Join(trial.Validate(), checkLocal(opt), checkAuto(opt), checkHeal(opt), errFilter); err != nil {
		return submit.Request{}, err
	}
	names := slices.Clone(opt.Inputs)
	if opt.Files != "" {
		listed, err := inputs.List(opt.Files)
		if err != nil {
			return submit.Request{}, err
		}
		names = append(names, listed...)
	}
	req.Inputs, req.Downloads, err = inputs.Resolve(cwd, names)
	return req, err
}

// maxLocal bounds --local, since each peer is a process.
const maxLocal = 256

func checkLocal(opt peer.RunOptions) error {
	switch {
	case opt.Local < 0 || opt.Local > maxLocal:
		return fmt.Errorf("--local is %d: want 1 to %d", opt.Local, maxLocal)
	case opt.Local > 0 && opt.Local < int(opt.Replicas):
		return fmt.Errorf("--local %d with -r %d: the replicas of a rank are on different peers, so at least %d are needed",
			opt.Local, opt.Replicas, opt.Replicas)
	case opt.Lose < 0:
		return fmt.Errorf("--lose is %v: want a time such as 2s", opt.Lose)
	case opt.Lose > 0 && opt.Local == 0:
		return errors.New("--lose kills a peer, so it requires --local")
	}
	return nil
}

func checkHeal(opt peer.RunOptions) error {
	if opt.Heal != peer.On && opt.Heal != peer.Off {
		return fmt.Errorf("--heal %.20q: want %s or %s", opt.Heal, peer.On, peer.Off)
	}
	return nil
}

func build(ctx context.Context, prog *program.Program, platforms []submit.Platform, into string) ([]submit.Executable, error) {
	var out []submit.Executable
	for _, platform := range platforms {
		e, err := prog.Build(ctx, platform, into)
		if ctx.Err() != nil {
			return nil, cancelled()
		}
		if err != nil {
			return nil, command.Fail(command.Usage, err, "")
		}
		out = append(out, e)
	}
	return out, nil
}

// buildForPeers builds a Go package for the platforms of the discovered peers, in addition to this
// machine's own.
func (j *submission) buildForPeers(ctx context.Context, s *session) error {
	if j.req.Programs[0].Platform == program.Wasm || !j.prog.Portable() || s.net != nil { // local peers: same platform
		return nil
	}
	candidates, err := s.candidates(ctx, j.req.Filter)
	if err != nil {
		return failure(ctx, err)
	}
	var others []submit.Platform
	for _, c := range candidates {
		if c.Platform != program.Local && !slices.Contains(others, c.Platform) {
			others = append(others, c.Platform)
		}
	}
	more, err := build(ctx, j.prog, others, j.built)
	j.req.Programs = append(j.req.Programs, more...)
	return err
}

// failure returns the command's failure for a job that ended with err instead of a result.
func failure(ctx context.Context, err error) error {
	if left, ok := errors.AsType[*control.LeftError](err); ok {
		status := command.Unavailable
		if ctx.Err() != nil {
			status = command.Cancelled
		}
		return command.Fail(status, left, fmt.Sprintf("start p2pboot on that home, then resume the job with p2prun --attach %.8s", left.Job))
	}
	if ctx.Err() != nil {
		return cancelled()
	}
	if known, ok := errors.AsType[*command.Failure](err); ok {
		return known
	}
	return command.Fail(command.Unavailable, err, "")
}

func cancelled() error {
	return command.Fail(command.Cancelled, errors.New("cancelled"), "")
}

// watchdog returns a function that shows a job's events and, with --lose, kills the peer of rank 0's master
// after the time lose.
func watchdog(s *session, lose time.Duration, req submit.Request, show *display.Display) func(submit.Event) error {
	if lose == 0 {
		return show.Event
	}
	killer := &masterKiller{view: view.New(req.N, req.R), placed: make(map[view.Process]string)}
	var once sync.Once
	return func(e submit.Event) error {
		killer.update(e)
		if e.Kind == submit.PhaseEvent && e.Phase == submit.Running {
			once.Do(func() {
				s.after(lose, func() { killer.kill(s.net, show) })
			})
		}
		return show.Event(e)
	}
}

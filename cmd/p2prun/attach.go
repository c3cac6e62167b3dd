package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/cmd/internal/display"
	"github.com/p2pmpi/p2pmpi/cmd/internal/workdir"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// attach resumes a job whose p2prun was killed, and returns the job's exit status.
func attach(ctx context.Context, cfg peer.Config, opt peer.RunOptions, args []string, stdout, stderr *command.Output) (int, error) {
	if err := cfg.Validate(); err != nil {
		return 0, command.Fail(command.Usage, err, hintHelp)
	}
	kept, err := choose(ctx, cfg.Home, args)
	if err != nil {
		return 0, command.FailHome(err)
	}
	show := display.New(display.Config{
		Name: "p2prun", Stdout: stdout, Stderr: stderr,
		Ranks: kept.Request.N, Replicas: kept.Request.R, Tag: opt.TagOutput, JSON: opt.JSON,
	})
	defer show.Close()
	if !kept.Ends.IsZero() {
		late := time.AfterFunc(time.Until(kept.Ends), func() { interrupt(stdout, stderr) })
		defer late.Stop()
	}
	follow := attachOwn
	if kept.Handed() {
		follow = attachHanded
	}
	result, err := follow(ctx, cfg, opt.Cancel, kept, show, stderr)
	if err != nil {
		return 0, err
	}
	show.Result(result)
	return result.Status, nil
}

// attachOwn resumes a job as a peer with the identity of the killed p2prun.
func attachOwn(ctx context.Context, cfg peer.Config, cancel bool, kept submit.Kept, show *display.Display, stderr io.Writer) (job.Result, error) {
	var err error
	if cfg.Identity, err = kept.Key(); err != nil {
		return job.Result{}, command.Fail(command.Usage, err, "")
	}
	work, err := workdir.New()
	if err != nil {
		return job.Result{}, command.Fail(command.Unavailable, err, "set TMPDIR to a directory with free space")
	}
	defer work.Close()
	s := &session{home: cfg.Home, done: make(chan struct{})}
	defer s.close()
	if err := s.join(ctx, cfg, peer.RunOptions{}, work, stderr); err != nil {
		return job.Result{}, failure(ctx, err)
	}
	if cancel {
		over, end := context.WithCancel(ctx)
		end()
		ctx = over
	}
	return s.own.Submitter().Attach(ctx, kept.Job, submit.Showing(show.Event)), nil
}

// attachHanded lets the p2pboot of the home resume a job, with its own identity.
func attachHanded(ctx context.Context, cfg peer.Config, cancel bool, kept submit.Kept, show *display.Display, _ io.Writer) (job.Result, error) {
	client, err := control.Dial(ctx, cfg.Home)
	if errors.Is(err, control.ErrNoPeer) {
		return job.Result{}, command.Fail(command.Unavailable,
			fmt.Errorf("job %.8s was handed to the p2pboot of home %s, which has ended", kept.Job, cfg.Home),
			"start p2pboot on that home again, then attach")
	}
	if err != nil {
		return job.Result{}, command.FailHome(err)
	}
	defer client.Close()
	result, err := client.Attach(ctx, kept, cancel, show.Event)
	if refused, ok := errors.AsType[*control.RefusedError](err); ok {
		return result, command.Fail(command.Usage, refused, "")
	}
	if err != nil {
		return result, failure(ctx, err)
	}
	return result, nil
}

// choose returns the resumable job whose ID begins with the argument. Without args it returns the only one
// that no p2prun is attached to, as far as the p2pboot of the home knows.
func choose(ctx context.Context, home string, args []string) (submit.Kept, error) {
	if len(args) > 1 {
		return submit.Kept{}, errors.New("--attach takes one JOB")
	}
	all, err := submit.Keeping(homedir.JobsOf(home))
	if err != nil {
		return submit.Kept{}, &homedir.Error{Home: home, Err: err}
	}
	prefix := strings.Join(args, "")
	if prefix == "" {
		all = withoutAttached(ctx, home, all)
	}
	var found []submit.Kept
	var names []string
	var outdated error
	for _, k := range all {
		if !strings.HasPrefix(k.Job, prefix) {
			continue
		}
		if err := k.CheckVersion(); err != nil && !k.Handed() { // of a handed-over job, the version of the p2pboot counts
			outdated = err
			continue
		}
		found = append(found, k)
		names = append(names, fmt.Sprintf("%s (%s, since %s)", k.Job, k.Request.Name, k.Since.Local().Format("Jan 2 15:04")))
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return submit.Kept{}, fmt.Errorf("several jobs can be resumed; name one: %s", strings.Join(names, ", "))
	case outdated != nil:
		return submit.Kept{}, outdated
	case prefix != "":
		return submit.Kept{}, fmt.Errorf("no resumable job %.40s in home %s", prefix, home)
	}
	return submit.Kept{}, fmt.Errorf("no resumable job in home %s", home)
}

// withoutAttached omits the jobs that were handed to the p2pboot of the home and to which a p2prun is
// attached.
func withoutAttached(ctx context.Context, home string, all []submit.Kept) []submit.Kept {
	client, err := control.Dial(ctx, home)
	if err != nil {
		return all
	}
	defer client.Close()
	state, err := client.Status(ctx)
	if err != nil {
		return all
	}
	return slices.DeleteFunc(all, func(k submit.Kept) bool {
		return slices.ContainsFunc(state.Submitted, func(s status.Submitted) bool { return s.Job == k.Job && s.Detached.IsZero() })
	})
}

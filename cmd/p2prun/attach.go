package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/cmd/internal/display"
	"github.com/p2pmpi/p2pmpi/cmd/internal/workdir"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/job"
)

// attach goes on with a job whose p2prun was killed, as a peer with the identity of
// that one, and returns the job's exit status.
func attach(ctx context.Context, cfg peer.Config, opt peer.RunOptions, args []string, stdout, stderr io.Writer) (int, error) {
	if err := cfg.Validate(); err != nil {
		return 0, command.Fail(command.Usage, err, hintHelp)
	}
	kept, err := choose(cfg.Home, args)
	if err != nil {
		return 0, command.Fail(command.Usage, err, "")
	}
	if cfg.Identity, err = kept.Key(); err != nil {
		return 0, command.Fail(command.Usage, err, "")
	}
	work, err := workdir.New()
	if err != nil {
		return 0, command.Fail(command.Unavailable, err, "name a folder with room in TMPDIR")
	}
	defer work.Close()
	show := display.New(display.Config{
		Name: "p2prun", Stdout: stdout, Stderr: stderr,
		Ranks: kept.Request.N, Replicas: kept.Request.R, Tag: opt.TagOutput, JSON: opt.JSON,
	})
	defer show.Close()
	s := &session{home: cfg.Home, done: make(chan struct{})}
	defer s.close()
	opt.Local = 0
	if err := s.join(ctx, cfg, opt, work, stderr); err != nil {
		return 0, failure(ctx, err)
	}
	if opt.Cancel {
		over, cancel := context.WithCancel(ctx)
		cancel()
		ctx = over
	}
	result := s.own.Submitter().Attach(ctx, kept.Job, show.Event)
	show.Result(result)
	return result.Status, nil
}

// choose returns the kept job whose ID begins as args say, or the only one.
func choose(home string, args []string) (job.Kept, error) {
	if len(args) > 1 {
		return job.Kept{}, errors.New("--attach takes one JOB")
	}
	all, err := job.Keeping(peer.JobsOf(home))
	if err != nil {
		return job.Kept{}, err
	}
	prefix := strings.Join(args, "")
	var found []job.Kept
	var names []string
	for _, k := range all {
		if strings.HasPrefix(k.Job, prefix) {
			found = append(found, k)
			names = append(names, fmt.Sprintf("%s (%s, since %s)", k.Job, k.Request.Name, k.Since.Local().Format("Jan 2 15:04")))
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return job.Kept{}, fmt.Errorf("several jobs can be gone on with; say which: %s", strings.Join(names, ", "))
	case prefix != "":
		return job.Kept{}, fmt.Errorf("no job %.40s to go on with on home %s", prefix, home)
	}
	return job.Kept{}, fmt.Errorf("no job to go on with on home %s", home)
}

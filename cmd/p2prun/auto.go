package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/peer"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

func checkAuto(opt peer.RunOptions) error {
	if opt.Replicas != peer.AutoReplicas {
		return nil
	}
	switch {
	case opt.Success == 0:
		return errors.New("-r auto requires --success P: the wanted probability of success, such as 0.99")
	case !(opt.Success > 0 && opt.Success < 1):
		return fmt.Errorf("--success is %v: want a probability above 0 and below 1, such as 0.99", opt.Success)
	case opt.Expect < 0:
		return fmt.Errorf("--expect is %v: want a time such as 90s or 2h", opt.Expect)
	case opt.Expect == 0 && opt.Timeout == 0:
		return errors.New("-r auto requires --expect TIME: the expected run time of the job, such as 2h")
	case opt.Timeout > 0 && opt.Expect > opt.Timeout:
		return fmt.Errorf("--expect is %v, but --timeout ends the job after %v", opt.Expect, opt.Timeout)
	}
	return nil
}

// searchEvery is the interval between searches while there are too few peers.
const searchEvery = 500 * time.Millisecond

// chooseReplicas sets the job's number of replicas according to the discovered peers. If there are too few peers
// until the job's waiting time ends, chooseReplicas returns a result that reports this.
func (j *submission) chooseReplicas(ctx context.Context, s *session) (*job.Result, error) {
	opt, req := j.opt, &j.req
	expect := opt.Expect
	if expect == 0 {
		expect = opt.Timeout
	}
	var platforms []submit.Platform
	for _, p := range req.Programs {
		platforms = append(platforms, p.Platform)
	}
	for deadline := time.Now().Add(req.Wait); ; {
		candidates, err := s.candidates(ctx, req.Filter)
		if err != nil {
			return nil, failure(ctx, err)
		}
		choice, err := submit.ChooseReplicas(req.N, opt.Success, expect, platforms, candidates)
		if err == nil {
			req.R = choice.Replicas
			return nil, failure(ctx, j.show.Event(choice.Event()))
		}
		left := time.Until(deadline)
		if left <= 0 {
			return &job.Result{Status: command.Unavailable, Message: err.Error(), Hint: hintMoreRoom}, nil
		}
		select {
		case <-time.After(min(left, searchEvery)):
		case <-ctx.Done():
			return nil, cancelled()
		}
	}
}

const hintMoreRoom = "start more peers with p2pboot, wait longer with -w, or lower --success"

package launch

import (
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// TestO3OwnerStopsAJob stops a job at each step. Its submitter learns why, and nothing of the job is left,
// whatever the submitter does. Another job on the same peer continues.
func TestO3OwnerStopsAJob(t *testing.T) {
	skip.Long(t)
	const why = "its owner has stopped the job here"
	ended := func(j *testJob) string {
		for rank := range j.spec.N {
			if e := j.links[0].exited(view.Process{Rank: rank}); e.Reason != why {
				return e.Reason
			}
		}
		return why
	}
	cases := map[string]struct {
		until func(j *testJob)
		says  func(j *testJob) string
	}{
		"staged": {(*testJob).prepare, func(j *testJob) string {
			j.tell(j.startMessage())
			return await(j.links[0], (*jobpb.FromPeer).GetStarted).Error
		}},
		"staged, and its submitter is silent": {(*testJob).prepare, func(*testJob) string { return why }},
		"started":                             {(*testJob).start, ended},
		"running":                             {(*testJob).run, ended},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bed := newTestbed(t, 1, 4)
			other := bed.newJob(t, 2, 1, nil, "wait")
			other.run()
			j := bed.newJob(t, 2, 1, nil, "wait")
			c.until(j)
			if how, err := bed.peers[0].launch.Stop(t.Context(), j.spec.ID, bed.peers[0].ID(), 0); how != Over || err != nil {
				t.Errorf("job of another submitter with the same ID: %q, %v", how, err)
			}
			gone := j.stopAt(0, time.Minute) // irrelevant for a job without replicas
			if got := c.says(j); got != why {
				t.Errorf("the submitter reads %q", got)
			}
			if how := <-gone; how != CutShort {
				t.Errorf("departure %q", how)
			}
			j.links[0].awaitEnd()
			if how, err := bed.peers[0].launch.Stop(t.Context(), j.spec.ID, j.submitter.ID(), 0); how != Over || err != nil {
				t.Errorf("second Stop: %q, %v", how, err)
			}
			if jobs := bed.peers[0].launch.Jobs(); len(jobs) != 1 || jobs[0].Job != other.spec.ID || jobs[0].State != Running {
				t.Errorf("jobs that are left: %+v", jobs)
			}
			other.stop()
		})
	}
}

// TestO3StoppedJobIsHandedOver checks that a stopped job is handed over if other peers have replicas of its
// processes.
func TestO3StoppedJobIsHandedOver(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	j := newTestJob(t, 1, 2, nil, "wait")
	j.run()
	gone := j.stopAt(0, time.Minute)
	p := await(j.links[0], (*jobpb.FromPeer).GetLeaving).GetProcess().View()
	without, _ := view.New(1, 2).With(p, view.Failed)
	j.tellView(without)
	if how := <-gone; how != HandedOver {
		t.Errorf("departure %q", how)
	}
	j.peers[0].checkNothingLeft(t)
	j.links = j.links[1:]
	j.stop()
}

// TestO3StoppedJobEndsAtTheTimeLimit checks that the owner's time limit ends the job, including a limit
// of zero.
func TestO3StoppedJobEndsAtTheTimeLimit(t *testing.T) {
	skip.Long(t)
	for name, within := range map[string]time.Duration{"now": 0, "soon": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newTestJob(t, 1, 2, nil, "wait")
			j.run()
			if how := <-j.stopAt(0, within); how != CutShort {
				t.Errorf("departure %q", how)
			}
			j.peers[0].checkNothingLeft(t)
			j.links = j.links[1:]
			j.stop()
		})
	}
}

// stopAt stops the job on a peer as its owner, and returns the channel for the result, once the peer has
// begun to stop it.
func (j *testJob) stopAt(peer int, within time.Duration) <-chan Departure {
	j.Helper()
	hosted, ok := j.peers[peer].launch.lookup(j.spec.ID)
	if !ok {
		j.Fatal("no job")
	}
	gone := make(chan Departure, 1)
	go func() { // ends with the job, or the test
		how, err := j.peers[peer].launch.Stop(j.Context(), j.spec.ID, j.submitter.ID(), within)
		if err != nil {
			j.Error(err)
		}
		gone <- how
	}()
	known := make(chan bool, 1)
	for late := time.Now().Add(eventTimeout); hosted.do(func() { known <- !hosted.reclaim.stopBy.IsZero() }) && !<-known; time.Sleep(time.Millisecond) { // interval between polls
		if time.Now().After(late) {
			j.Fatal("the deadline did not reach the job")
		}
	}
	return gone
}

package launch

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
)

// TestReclaimDeadline checks when a job that is to end loses its processes, its files and slots, and its membership
// in the view group.
func TestReclaimDeadline(t *testing.T) {
	now := time.Now()
	type due struct{ cut, release, end bool }
	for name, c := range map[string]struct {
		reclaim reclaim
		member  time.Duration
		want    due
	}{
		"no deadline":                   {reclaim{}, voteTimeout, due{}},
		"before the deadline":           {reclaim{stopBy: now.Add(time.Second)}, voteTimeout, due{}},
		"after the deadline":            {reclaim{stopBy: now}, voteTimeout, due{cut: true}},
		"the submitter may dismiss it":  {reclaim{stopBy: now.Add(-dismissTimeout), cut: errStopped}, 0, due{}},
		"not dismissed, no member":      {reclaim{stopBy: now.Add(-dismissTimeout - 1), cut: errStopped}, 0, due{end: true}},
		"not dismissed, a needed voter": {reclaim{stopBy: now.Add(-dismissTimeout - 1), cut: errStopped}, voteTimeout, due{release: true}},
		"needed for long":               {reclaim{stopBy: now.Add(-dismissTimeout - voteTimeout), cut: errStopped}, voteTimeout, due{release: true}},
		"needed for too long":           {reclaim{stopBy: now.Add(-dismissTimeout - voteTimeout - 1), cut: errStopped}, voteTimeout, due{end: true}},
	} {
		var got due
		if got.cut, got.release, got.end = c.reclaim.deadline(c.member, now); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestReclaimLeft checks when a job that was handed over ends: not as long as this peer is needed as a member of the
// view group, but for a limited time.
func TestReclaimLeft(t *testing.T) {
	now := time.Now()
	var r reclaim
	for _, step := range []struct {
		after  time.Duration
		needed bool
		member time.Duration
		want   bool
	}{
		{-time.Hour, true, voteTimeout, false},
		{0, false, voteTimeout, false}, // its last process has just left the view
		{dismissTimeout + 1, false, voteTimeout, false},
		{dismissTimeout + 1, false, 0, true},
		{dismissTimeout + 1, true, 0, false}, // another process was added
		{dismissTimeout + voteTimeout, false, voteTimeout, false},
		{dismissTimeout + voteTimeout + 1, false, voteTimeout, true},
	} {
		if got := r.left(step.needed, step.member, now.Add(step.after)); got != step.want {
			t.Errorf("after %v, needed %v, member %v: left %v", step.after, step.needed, step.member, got)
		}
	}
}

// TestEndedPeerKeepsItsVote checks that a peer whose owner has ended the job there remains a voter of the view group
// while the submitter is silent, since the other peer would have no majority. Its process is killed at once, and its
// files and slots are released as early as without a view group.
func TestEndedPeerKeepsItsVote(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	j := startKept(t, "sleep") // the submitter is a voter, and sends nothing
	j.begun()
	j.actForSubmitter()
	remains, ends := j.hosted(0), j.hosted(1)
	ends.do(func() { ends.cutShort(errDiskFull) })
	if e := j.links[1].exited(view.Process{Replica: 1}); e.Reason != errDiskFull.Error() {
		t.Errorf("the submitter reads %q", e.Reason)
	}
	owner := j.peers[1]
	j.eventually("the slot and the files are released", func() bool {
		left, _ := os.ReadDir(filepath.Join(owner.home, scratchFolder))
		return owner.reservations.Snapshot().Running == 0 && len(left) == 0 && len(processesBelow(owner.home)) == 0
	})
	j.eventually("the owner sees that the job is ending", func() bool {
		return !slices.ContainsFunc(owner.launch.Jobs(), func(s JobStatus) bool { return s.State != Ending })
	})
	owner.checkNothingLeft(t)
	if !errors.Is(ends.ended, errDiskFull) {
		t.Errorf("ended with %v", ends.ended)
	}
	group := answered(t, remains, func() *viewgroup.Group { return remains.views.group })
	j.eventually("the other peer alone votes", func() bool { return group.Voters() == 1 && group.Votes(j.peers[0].ID()) })
	if answered(t, remains, func() bool { return remains.views.current.Has(view.Process{Replica: 1}) }) {
		t.Error("the killed process is in the view")
	}
	if c := group.Contact(); c != viewgroup.InTouch {
		t.Errorf("contact %v", c)
	}
	j.links, j.peers = j.links[:1], j.peers[:1]
	j.stop()
}

// actForSubmitter makes the peers act for the submitter, as if it had been silent for actAfter.
func (j *testJob) actForSubmitter() {
	j.Helper()
	for k := range j.peers {
		job := j.hosted(k)
		job.do(func() { job.presence.enter(unreachable, time.Now().Add(-actAfter)) })
	}
}

// TestEndedPeersLeaveOneByOne checks that two of three voters may end the job at the same time, although none of them
// loses its vote before its time is over: the remaining peer keeps a majority.
func TestEndedPeersLeaveOneByOne(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	j := newTestJob(t, 1, 3, nil, "sleep").startKept()
	j.begun()
	j.actForSubmitter()
	group := answered(t, j.hosted(0), func() *viewgroup.Group { return j.hosted(0).views.group })
	j.eventually("the peers vote, and the submitter does not", func() bool { return group.Voters() == 3 && !group.Votes(j.submitter.ID()) })
	for k := range j.peers[1:] {
		ends := j.hosted(1 + k)
		ends.do(func() { ends.cutShort(errDiskFull) })
	}
	j.eventually("their processes are out of the view", func() bool {
		v := answered(t, j.hosted(0), func() view.View { return j.hosted(0).views.current })
		return !v.Has(view.Process{Replica: 1}) && !v.Has(view.Process{Replica: 2})
	})
	if n := group.Voters(); n != 3 {
		t.Errorf("%d voters, want 3", n)
	}
	for k := range j.peers[1:] {
		ends := j.hosted(1 + k)
		ends.do(func() { ends.reclaim.stopBy = time.Now().Add(-dismissTimeout - voteTimeout) })
	}
	for _, peer := range j.peers[1:] {
		peer.checkNothingLeft(t)
	}
	j.eventually("the other peer alone votes", func() bool { return group.Voters() == 1 && group.Votes(j.peers[0].ID()) })
	if c := group.Contact(); c != viewgroup.InTouch {
		t.Errorf("contact %v", c)
	}
	j.links, j.peers = j.links[:1], j.peers[:1]
	j.stop()
}

// TestPeerThatKeepsOnlyItsVote checks that a job of which only the vote is left offers no files, and accepts no
// process, and that its submitter can bring the job again.
func TestPeerThatKeepsOnlyItsVote(t *testing.T) {
	t.Parallel()
	j := newTestJob(t, 1, 1, nil, "files")
	j.start()
	p := view.Process{}
	j.links[0].exited(p)
	hosted, peer := j.hosted(0), j.peers[0]
	hosted.do(func() {
		hosted.cutShort(errDiskFull)
		hosted.reclaim.stopBy = time.Now().Add(time.Hour) // no tick ends it
		hosted.keepVoteOnly()
	})
	j.eventually("its slot is released", func() bool { return peer.reservations.Snapshot().Running == 0 })
	j.links[0].say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Collect{Collect: &jobpb.Collect{Process: jobpb.FromProcess(p), Patterns: []string{"*"}}}})
	if c := await(j.links[0], (*jobpb.FromPeer).GetCollected); c.Error != errDiskFull.Error() {
		t.Errorf("collected %q, %d bytes", c.Error, len(c.Manifest))
	}
	if err := answered(t, hosted, func() error { return hosted.hasPlace(view.Process{Replica: 1}) }); err == nil {
		t.Error("it accepts another process")
	}
	if how, err := peer.launch.Stop(t.Context(), j.spec.ID, j.submitter.ID(), 0); how != CutShort || err != nil {
		t.Errorf("Stop: %q, %v", how, err)
	}
	l := j.connect(peer)
	l.say(j.prepareMessage(0, j.reserve(peer, 1)))
	if p := await(l, (*jobpb.FromPeer).GetPrepared); p.Error != "" {
		t.Fatal(p.Error)
	}
	j.links[0] = l
	j.stop()
}

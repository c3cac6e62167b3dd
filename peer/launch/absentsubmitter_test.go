package launch

import (
	"errors"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// resume opens a control stream to a peer that begins with Resume, and returns the answer.
func (j *testJob) resume(from host.Host, peer *member, job string, heard uint64) (*testLink, *jobpb.Resumed) {
	j.Helper()
	return j.resumeWith(from, peer, &jobpb.Resume{Job: job, Heard: heard})
}

func (j *testJob) resumeWith(from host.Host, peer *member, resume *jobpb.Resume) (*testLink, *jobpb.Resumed) {
	j.Helper()
	l := j.reopen(from, peer, resume)
	return l, await(l, (*jobpb.FromPeer).GetResumed)
}

func (j *testJob) reopen(from host.Host, peer *member, resume *jobpb.Resume) *testLink {
	j.Helper()
	s, err := from.NewStream(j.Context(), peer.ID(), ControlProtocol)
	if err != nil {
		j.Fatal(err)
	}
	l := newTestLink(j.T, s)
	l.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Resume{Resume: resume}})
	return l
}

// startAlone starts a job of one rank, whose peers then lose contact with the submitter.
func startAlone(t *testing.T, args ...string) *testJob {
	j := newTestJob(t, 1, 2, nil, args...)
	start := j.startMessage()
	start.GetStart().AwayNs = int64(time.Minute)
	j.prepare()
	j.tell(start)
	for _, l := range j.links {
		await(l, (*jobpb.FromPeer).GetStarted)
		l.kept = nil
	}
	j.peers[0].meet(j.peers[1])
	j.peers[1].meet(j.peers[0])
	j.begin()
	j.joinGroup(&jobpb.Join{Views: []uint32{2, 0, 1}}, false) // no heartbeat arrives
	for _, l := range j.links {
		if s := await(l, (*jobpb.FromPeer).GetSuspect); p2ppeer.ID(s.Peer) != j.submitter.ID() {
			t.Errorf("suspects %v, want the submitter", s)
		}
	}
	return j
}

// TestSubmitterReconnectsToARunningJob checks that the processes end and their slots are
// released, and that a returning submitter receives their messages and output.
func TestSubmitterReconnectsToARunningJob(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	j := startAlone(t, "print", "line", "3", "0")
	for _, l := range j.links {
		l.stream.Reset()
	}
	for _, peer := range j.peers {
		for peer.reservations.Snapshot().Running > 0 {
			select {
			case <-peer.reservations.Changed():
			case <-time.After(eventTimeout):
				t.Fatal("the slots were not released")
			}
		}
	}
	for k, peer := range j.peers {
		l, r := j.resume(j.submitter.Host, peer, j.spec.ID, 2) // Prepared and Started at least
		if r.Error != "" {
			t.Fatal(r.Error)
		}
		if e := l.exited(view.Process{Replica: k}); e.Code != 0 {
			t.Errorf("exit %v", e)
		}
		if k == 0 {
			if got := l.output(view.Process{}, 1); got != "line 0\nline 1\nline 2\n" {
				t.Errorf("output %q", got)
			}
		}
		j.links[k] = l
	}
	j.stop()
}

// TestR6ReceivedMessagesAreNotRepeated checks what a reconnecting submitter receives: only the messages
// that it lacks, however often it reconnects, and the output that it has not acknowledged.
func TestR6ReceivedMessagesAreNotRepeated(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	j := startAlone(t, "print", "line", "3", "0")
	job := j.hosted(0)
	said := answered(t, job, func() int { return len(job.control.messages) })
	first, r := j.resume(j.submitter.Host, j.peers[0], j.spec.ID, uint64(said))
	if r.Error != "" {
		t.Fatal(r.Error)
	}
	if got := first.output(view.Process{}, 1); got != "line 0\nline 1\nline 2\n" {
		t.Errorf("output %q", got)
	}
	if len(first.kept) > 1 { // the end of the other stream
		t.Errorf("repeated %v", first.kept)
	}
	again, r := j.resume(j.submitter.Host, j.peers[0], j.spec.ID, uint64(said)-1)
	if r.Error != "" {
		t.Fatal(r.Error)
	}
	first.awaitEnd()
	if m, err := again.next(); err != nil || m.GetOutput() != nil {
		t.Errorf("%v %v; want the last message again", m, err)
	}
	if got := again.output(view.Process{}, 1); got != "line 0\nline 1\nline 2\n" { // not acknowledged
		t.Errorf("output %q", got)
	}
	j.links[0] = again
	j.joinGroup(&jobpb.Join{Generation: 1}, true)
	j.stop()
}

func TestOnlyTheSubmitterMayReconnect(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	j := startAlone(t, "sleep")
	stranger := newMember(t, 0)
	stranger.meet(j.peers[0])
	for name, c := range map[string]struct {
		from  host.Host
		job   string
		heard uint64
	}{
		"stranger":          {stranger.Host, j.spec.ID, 0},
		"another job":       {j.submitter.Host, "none", 0},
		"too many received": {j.submitter.Host, j.spec.ID, 1 << 40},
		"an empty job name": {j.submitter.Host, "", 0},
	} {
		if l, r := j.resume(c.from, j.peers[0], c.job, c.heard); r.Error == "" {
			t.Errorf("%s: accepted", name)
		} else {
			l.awaitEnd()
		}
	}
	j.stop() // on the first stream
}

// TestJobThatHasNotBegunEndsWithItsSubmitter checks that such a job ends without its submitter, since only
// the submitter can let it begin.
func TestJobThatHasNotBegunEndsWithItsSubmitter(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	j := newTestJob(t, 1, 2, nil, "sleep")
	j.start()
	j.peers[0].meet(j.peers[1])
	j.peers[1].meet(j.peers[0])
	j.joinGroup(&jobpb.Join{Views: []uint32{2, 0, 1}}, false)
	for _, l := range j.links {
		await(l, (*jobpb.FromPeer).GetSuspect)
	}
	for _, l := range j.links {
		l.stream.Reset()
	}
	j.gone()
}

// startKept starts a job of one rank whose submitter may come back as a new process.
func startKept(t *testing.T, args ...string) *testJob {
	return newTestJob(t, 1, 2, nil, args...).startKept()
}

func (j *testJob) startKept() *testJob {
	j.Helper()
	start := j.startMessage()
	start.GetStart().AwayNs, start.GetStart().Returns = int64(time.Minute), true
	j.prepare()
	j.tell(start)
	for _, l := range j.links {
		await(l, (*jobpb.FromPeer).GetStarted)
	}
	j.peers[0].meet(j.peers[1])
	j.peers[1].meet(j.peers[0])
	j.joinGroup(&jobpb.Join{Views: []uint32{2, 0, 1}}, true)
	j.begin()
	return j
}

// begun waits until processes may leave mpj.Init on all peers.
func (j *testJob) begun() {
	j.Helper()
	late := time.Now().Add(eventTimeout)
	for k := range j.peers {
		job := j.hosted(k)
		for !answered(j, job, func() bool { return job.settings.init != awaitsBegin }) {
			if time.Now().After(late) {
				j.Fatal("the job does not begin")
			}
		}
	}
}

// TestNewSubmitterReceivesAllMessages checks that each new process of a killed submitter receives all
// messages and the output, once. It is a member of the view group and can propose changes. Each peer runs two
// ranks, so that one that loses a process still has another. Otherwise it might end too early.
func TestNewSubmitterReceivesAllMessages(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	const ranks = 2
	j := newTestJob(t, ranks, 2, nil, "print", "line", "3", "0").startKept()
	for k, l := range j.links {
		for rank := range ranks {
			l.exited(view.Process{Rank: rank, Replica: k})
		}
	}
	for range 2 {
		for _, l := range j.links {
			l.stream.Conn().Close() // as the kernel does
		}
		for k, peer := range j.peers {
			l := j.resumeAsNewProcess(peer)
			if p := await(l, (*jobpb.FromPeer).GetPrepared); p.Error != "" {
				t.Errorf("not prepared: %s", p.Error)
			}
			for rank := range ranks {
				if e := l.exited(view.Process{Rank: rank, Replica: k}); e.Code != 0 {
					t.Errorf("exit %v", e)
				}
			}
			j.links[k] = l
		}
		if got := j.links[0].output(view.Process{}, 1); got != "line 0\nline 1\nline 2\n" {
			t.Errorf("output %q", got)
		}
	}
	s := j.replaceSubmitter()
	for _, p := range view.New(ranks, 2).Processes() {
		s.changes(view.Change{Process: p, To: view.Finished})
	}
	s.changes(view.Change{Process: view.Process{Replica: 1}, To: view.Failed})
	j.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Stop{Stop: &jobpb.Stop{Reason: "test"}}})
	j.gone()
}

// TestUnsuspectedSubmitterReconnects checks that a submitter can reconnect if its connections break
// before it is found silent. It is the same process.
func TestUnsuspectedSubmitterReconnects(t *testing.T) {
	t.Parallel()
	j := startKept(t, "sleep")
	j.begun()
	for _, l := range j.links {
		l.stream.Conn().Close()
	}
	for k, peer := range j.peers {
		l, r := j.resume(j.submitter.Host, peer, j.spec.ID, 2)
		if r.Error != "" {
			t.Fatal(r.Error)
		}
		j.links[k] = l
	}
	j.stop()
}

// TestReconnectedSubmitterReceivesTheOutputOfAFailedProgram checks that the peers propose a process's failure
// only after the user has received its output, since a failed process sends no more. The submitter has
// reconnected, and has yet to join the fault detector's group again.
func TestReconnectedSubmitterReceivesTheOutputOfAFailedProgram(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	j := startKept(t, "print", "line", "3", "5")
	j.begun()
	for k, peer := range j.peers {
		j.links[k] = j.resumeAsNewProcess(peer)
		if e := j.links[k].exited(view.Process{Replica: k}); e.Code != 5 {
			t.Errorf("exit %v", e)
		}
	}
	s := j.replaceSubmitter()
	job := j.hosted(0)
	job.do(func() {
		job.presence.enter(unreachable, job.presence.lastMessageAt.Add(-actAfter))
		job.actForSubmitter()
	})
	other := view.Change{Process: view.Process{Replica: 1}, To: view.Failed}
	s.group.Propose(other)
	if c := s.next(); c != other {
		t.Fatalf("agreed on %v, want %v", c, other)
	}
	if got := j.links[0].output(view.Process{}, 1); got != "line 0\nline 1\nline 2\n" {
		t.Errorf("output %q", got)
	}
	for _, l := range j.links {
		l.stream.ResetWithError(jobpb.Left)
	}
	j.gone()
}

// TestReplacedSubmitterIsNotified checks that an old process of the submitter is told that another one
// has resumed the job, whether it is connected or comes back later. The new one continues.
func TestReplacedSubmitterIsNotified(t *testing.T) {
	t.Parallel()
	j := startKept(t, "sleep")
	j.begun()
	resumed := j.resumeAsNewProcess(j.peers[0])
	late := j.reopen(j.submitter.Host, j.peers[0], &jobpb.Resume{Job: j.spec.ID, Heard: 2})
	for name, l := range map[string]*testLink{"connected": j.links[0], "comes back": late} {
		l.awaitEnd()
		if e, ok := errors.AsType[*network.StreamError](l.ended); !ok || !e.Remote || e.ErrorCode != jobpb.Replaced {
			t.Errorf("%s: its stream ends with %v", name, l.ended)
		}
	}
	j.links[0] = resumed
	j.stop()
}

// TestLeavingSubmitterIsNotWaitedFor checks that the job ends if the submitter says that it leaves, or
// has not announced that it may come back.
func TestLeavingSubmitterIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	j := startKept(t, "sleep")
	for _, l := range j.links {
		l.stream.ResetWithError(jobpb.Left)
	}
	j.gone()
}

// TestNewSubmitterToleratesAnotherLoss checks that the view group drops the peer of a failed process once it
// is not needed. Then the new process and the other peer can still agree.
func TestNewSubmitterToleratesAnotherLoss(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	j := startKept(t, "sleep")
	for k, peer := range j.peers {
		j.links[k] = j.resumeAsNewProcess(peer)
	}
	s := j.replaceSubmitter()
	s.changes(view.Change{Process: view.Process{Replica: 1}, To: view.Failed})
	s.group.Gone(j.peers[1].ID())
	for end := time.Now().Add(eventTimeout); s.group.Votes(j.peers[1].ID()); {
		if time.Now().After(end) {
			t.Fatal("a peer without live processes still votes")
		}
	}
	j.links[1].say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Stop{Stop: &jobpb.Stop{Reason: "test"}}})
	j.links[1].awaitEnd()
	s.changes(view.Change{Process: view.Process{}, To: view.Failed})
	j.links[0].say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Stop{Stop: &jobpb.Stop{Reason: "test"}}})
	j.gone()
}

// TestRecruitFailsIfItsSubmitterIsLost checks that a joining process counts as failed if its submitter is
// lost before it may leave mpj.Init, since other processes would wait for it.
func TestRecruitFailsIfItsSubmitterIsLost(t *testing.T) {
	t.Parallel()
	p := view.Process{Replica: 2}
	j := &job{admission: admission{joining: true}, here: processSet{local: map[view.Process]*process{p: {}}}, presence: presence{state: unreachable, since: time.Now()}}
	if is := j.stateHere(p); is != view.Live {
		t.Errorf("while it may join: state %v, want live", is)
	}
	j.presence.since = time.Now().Add(-actAfter - time.Second)
	if is := j.stateHere(p); is != view.Failed {
		t.Errorf("after its submitter was lost: state %v, want failed", is)
	}
	j.settings.init = initReturns
	if is := j.stateHere(p); is != view.Live {
		t.Errorf("after it has joined: state %v, want live", is)
	}
}

// TestS4RecruitThatNeverJoinsEnds checks that such a process ends, whether its submitter reconnects or not. It
// may never have joined, so that no view fails it.
func TestS4RecruitThatNeverJoinsEnds(t *testing.T) {
	t.Parallel()
	for _, reconnected := range []bool{false, true} {
		j := &job{
			admission: admission{joining: true}, service: &Service{}, state: Running,
			presence: presence{state: unreachable, since: time.Now().Add(-minAbsence - time.Second), away: maxAway, mayReturn: true},
		}
		if reconnected {
			j.control.stream, j.presence.lastMessageAt = &controlStream{}, time.Now()
		}
		if j.actForSubmitter(); !errors.Is(j.ended, errSubmitterFailed) {
			t.Errorf("reconnected %v: ended with %v", reconnected, j.ended)
		}
	}
}

// TestS4KeptDataIsBounded checks the bound on kept data. Otherwise jobs of vanished submitters
// would fill the owner's disk and memory.
func TestS4KeptDataIsBounded(t *testing.T) {
	s := &Service{kept: make(map[*job]int64), gone: make(chan struct{})}
	one := func(processes int) *job {
		return &job{spec: &jobspec.Spec{}, here: processSet{order: make([]view.Process, processes)}}
	}
	large, wide := one(1), one(maxKeptProcesses-1)
	for _, step := range []struct {
		what  string
		job   *job
		bytes int64
		want  bool
	}{
		{"more than the limit", one(1), maxKept + 1, false},
		{"the limit", large, maxKept, true},
		{"beyond the limit", one(1), 1, false},
		{"no bytes, many processes", wide, 0, true},
		{"too many processes", one(1), 0, false},
	} {
		if got := s.keep(step.job, step.bytes); got != step.want {
			t.Errorf("%s: kept %v", step.what, got)
		}
	}
	s.forget(wide)
	s.forget(large)
	if !s.keep(one(maxKeptProcesses), maxKept) {
		t.Error("not kept after earlier jobs were removed")
	}
}

// TestPartitionedPeerKeepsOutput checks that a peer that is cut off does not end the job if it only keeps
// output.
func TestPartitionedPeerKeepsOutput(t *testing.T) {
	t.Parallel()
	j := &job{service: &Service{}, keeping: keeping{outputOnly: true}}
	if j.cutOff(); j.ended != nil {
		t.Errorf("with output only: ended with %v", j.ended)
	}
	j.keeping.outputOnly = false
	if j.cutOff(); !errors.Is(j.ended, errCutOff) {
		t.Errorf("with a process: ended with %v", j.ended)
	}
}

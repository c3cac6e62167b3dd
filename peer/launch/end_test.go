package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// TestS4LostSubmitterLeavesNothing loses the submitter at each step after its slots were
// confirmed. Before that, a lease alone holds them (TestS2UnconfirmedHoldExpires,
// TestS4ConfirmedHoldEndsUnlessConfirmedAgain).
func TestS4LostSubmitterLeavesNothing(t *testing.T) {
	skip.Long(t)
	hangUp := func(j *testJob) { j.links[0].stream.Reset() }
	cases := map[string]struct {
		program string
		until   func(j *testJob)
		vanish  func(j *testJob)
	}{
		"before files come": {"sleep", func(j *testJob) {
			l := j.connect(j.peers[0])
			j.links = append(j.links, l)
			l.say(j.prepareMessage(0, j.reserve(j.peers[0], 2)))
			for late := time.Now().Add(eventTimeout); len(j.peers[0].launch.Jobs()) == 0; time.Sleep(time.Millisecond) { // interval between polls
				if time.Now().After(late) {
					j.Fatal("no job")
				}
			}
		}, hangUp},
		"when staging is done":   {"sleep", (*testJob).prepare, hangUp},
		"while starting":         {"sleep", func(j *testJob) { j.prepare(); j.tell(j.startMessage()) }, hangUp},
		"when started":           {"sleep", (*testJob).start, hangUp},
		"in good order":          {"sleep", (*testJob).start, func(j *testJob) { j.links[0].stream.Close() }},
		"while running":          {"wait", (*testJob).run, hangUp},
		"running, with its host": {"wait", (*testJob).run, func(j *testJob) { j.submitter.Close() }},
		"when all have ended":    {"files", (*testJob).ended, hangUp},
		"when it asks for files": {"files", func(j *testJob) { j.ended(); j.tell(collectMessage) }, hangUp},
		"while collecting": {"files", func(j *testJob) {
			j.ended()
			j.tell(collectMessage)
			if c := await(j.links[0], (*jobpb.FromPeer).GetCollected); c.Error != "" {
				j.Fatal(c.Error)
			}
		}, func(j *testJob) { j.submitter.Close() }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := newTestJob(t, 2, 1, map[string]string{"in/data": "flour"}, c.program)
			c.until(j)
			c.vanish(j)
			j.gone()
		})
	}
}

// TestSubmitterReconnectsAfterAFailedWrite checks that a submitter can reconnect to a job without replicas
// after a failed write. It resets a control stream when the link is down for longer than a write may take,
// and has not ended the job.
func TestSubmitterReconnectsAfterAFailedWrite(t *testing.T) {
	j := newTestJob(t, 1, 1, nil, "wait")
	j.run()
	hosted := j.hosted(0)
	j.links[0].stream.ResetWithError(jobpb.Unwritten)
	for late := time.Now().Add(eventTimeout); answered(t, hosted, func() bool { return hosted.control.stream != nil }); {
		if time.Now().After(late) {
			t.Fatal("the peer did not detect the end of the stream")
		}
	}
	l, r := j.resume(j.submitter.Host, j.peers[0], j.spec.ID, 0)
	if r.Error != "" {
		t.Fatal(r.Error)
	}
	j.links[0] = l
	j.stop()
}

// TestS4ReconnectedPeerAsksWhetherTheJobIsOver checks that a peer that missed the end of a job asks the
// submitter once they are connected again. The peer keeps the process and its slot only as long as the job
// continues.
func TestS4ReconnectedPeerAsksWhetherTheJobIsOver(t *testing.T) {
	j := newTestJob(t, 1, 1, nil, "wait")
	j.run()
	asked := make(chan struct{}, 1)
	jobpb.AnswerOver(j.submitter.Host, func(peer p2ppeer.ID, job string) bool {
		if peer != j.peers[0].ID() || job != j.spec.ID {
			t.Errorf("peer %s asks about job %q", peer, job)
		}
		asked <- struct{}{}
		return true
	})
	if err := j.submitter.Network().ClosePeer(j.peers[0].ID()); err != nil {
		t.Fatal(err)
	}
	if err := j.submitter.Connect(t.Context(), p2ppeer.AddrInfo{ID: j.peers[0].ID(), Addrs: j.peers[0].Addrs()}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-asked:
	case <-time.After(eventTimeout):
		t.Fatal("the peer did not ask whether the job is over")
	}
	j.gone()
}

// collectMessage requests the files that the program "files" writes.
var collectMessage = &jobpb.ToPeer{Body: &jobpb.ToPeer_Collect{Collect: &jobpb.Collect{Process: &jobpb.Process{}, Patterns: []string{"*.out"}}}}

// run starts the job, and waits until its processes have left mpj.Init.
func (j *testJob) run() {
	j.Helper()
	j.start()
	j.awaitInitialized()
	j.begin()
	j.begun()
}

// ended starts the job, and waits until all processes of the first peer have ended.
func (j *testJob) ended() {
	j.Helper()
	j.start()
	for rank := range j.spec.N {
		if e := j.links[0].exited(view.Process{Rank: rank}); e.Code != 0 {
			j.Fatalf("exit of rank %d: %v", rank, e)
		}
	}
}

// TestSubmitterReconnectsToAStagedPeer checks that the submitter can reconnect to a peer with a staged job,
// and that the peer waits no longer than promised (S4).
func TestSubmitterReconnectsToAStagedPeer(t *testing.T) {
	t.Parallel()
	j := newTestJob(t, 2, 1, nil, "sleep")
	j.prepare()
	j.links[0].stream.Conn().Close()
	l, r := j.resume(j.submitter.Host, j.peers[0], j.spec.ID, 0)
	if r.Error != "" {
		t.Fatal(r.Error)
	}
	if p := await(l, (*jobpb.FromPeer).GetPrepared); p.Error != "" {
		t.Fatal(p.Error)
	}
	l.say(j.startMessage())
	if s := await(l, (*jobpb.FromPeer).GetStarted); s.Error != "" {
		t.Fatal(s.Error)
	}
	j.links[0] = l
	j.stop()
}

func TestS4StagedPeerWaitsForABoundedTime(t *testing.T) {
	t.Parallel()
	j := newTestJob(t, 2, 1, nil, "sleep")
	j.prepare()
	job := j.cut()
	job.do(func() {
		job.presence.since = job.presence.since.Add(-minAbsence - time.Second) // as if that much time had passed
		job.loseDisconnected()
	})
	j.gone()
}

// TestS4StagedPeerLimitsTheWaitForItsStart checks the limit for a submitter that sends messages but never
// starts the job.
func TestS4StagedPeerLimitsTheWaitForItsStart(t *testing.T) {
	t.Parallel()
	j := newTestJob(t, 2, 1, nil, "sleep")
	j.prepare()
	hosted := j.hosted(0)
	hosted.do(func() { hosted.presence.stagedAt = hosted.presence.stagedAt.Add(-maxStaged) })
	j.links[0].say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Emitted{Emitted: &jobpb.Emitted{}}})
	j.gone()
}

// TestS4SlotsAreReleasedAfterTheLastProcess checks that slots are released after all processes have ended,
// although the submitter is connected. The output waits for the submitter, but not forever.
func TestS4SlotsAreReleasedAfterTheLastProcess(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	j := newTestJob(t, 1, 1, nil, "shell", "echo done")
	j.start()
	peer, p := j.peers[0], view.Process{}
	j.links[0].exited(p)
	hosted := j.hosted(0)
	j.eventually("the peer notices that all processes have ended", func() bool {
		return answered(t, hosted, func() bool { return !hosted.keeping.allEndedAt.IsZero() })
	})
	if s := peer.reservations.Snapshot(); s.Running != 1 {
		t.Errorf("the slots are given back at once: %+v", s)
	}
	hosted.do(func() { hosted.keeping.allEndedAt = hosted.keeping.allEndedAt.Add(-lingerFor) })
	j.eventually("the slots are released", func() bool { return peer.reservations.Snapshot().Running == 0 })
	if text := j.links[0].output(p, 1); text != "done\n" {
		t.Errorf("output %q, want done", text)
	}
	hosted.do(func() { hosted.since = hosted.since.Add(-maxLinger - 2*lingerFor) })
	j.gone()
}

// cut breaks the connection to the first peer of a staged job, and returns its part once that peer has
// noticed.
func (j *testJob) cut() *job {
	j.Helper()
	hosted := j.hosted(0)
	j.links[0].stream.Conn().Close()
	for late := time.Now().Add(eventTimeout); ; time.Sleep(time.Millisecond) { // interval between polls
		if answered(j, hosted, func() bool { return hosted.presence.state == disconnected }) {
			return hosted
		}
		if time.Now().After(late) {
			j.Fatal("the peer did not detect it")
		}
	}
}

// TestNewAttemptReplacesAnEarlierOne checks that a new attempt replaces one of the same submitter,
// which could not tell a disconnected peer to end it.
func TestNewAttemptReplacesAnEarlierOne(t *testing.T) {
	for name, noticed := range map[string]bool{"waits for it": true, "has not noticed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newTestbed(t, 1, 4).newJob(t, 2, 1, nil, "sleep")
			j.prepare()
			if noticed {
				j.cut()
			}
			l := j.connect(j.peers[0])
			l.say(j.prepareMessage(0, j.reserve(j.peers[0], j.spec.N)))
			if p := await(l, (*jobpb.FromPeer).GetPrepared); p.Error != "" {
				t.Fatal(p.Error)
			}
			j.links[0].awaitEnd()
			j.links[0] = l
			j.stop()
		})
	}
}

// TestS1BegunJobIsNotReplaced checks that a job that has begun is not replaced, even by its own
// submitter.
func TestS1BegunJobIsNotReplaced(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	j := newTestbed(t, 1, 2).newJob(t, 1, 1, nil, "sleep")
	j.start()
	j.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Begin{Begin: &jobpb.Begin{}}})
	j.begun()
	l := j.connect(j.peers[0])
	l.say(j.prepareMessage(0, j.reserve(j.peers[0], 1)))
	l.refused("is already at this peer")
	j.stop()
}

func TestS4CloseEndsEverything(t *testing.T) {
	j := newTestJob(t, 2, 1, nil, "sleep")
	j.start()
	if err := j.peers[0].launch.Close(); err != nil {
		t.Error(err)
	}
	j.links[0].awaitEnd()
	j.gone()
}

func TestNewServiceCleansUpAfterAKilledPeer(t *testing.T) {
	m := newMember(t, 0)
	m.launch.Close()
	if err := os.MkdirAll(filepath.Join(m.home, "scratch", "job", "0.0"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := NewService(m.Host, m.launch.config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	(&testJob{T: t}).eventually("all is gone", func() bool {
		left, _ := os.ReadDir(filepath.Join(m.home, "scratch"))
		return len(left) == 0
	})
	m.checkNothingLeft(t)
}

// testPeriod is long enough that a live peer on a busy machine does not count as failed, and short enough
// for a test to wait for 15 of them.
const testPeriod = 250 * time.Millisecond

// joinAll makes the peers members of one fault detection group, and the submitter too if submitterToo is
// set.
func (j *testJob) joinAll(submitterToo bool) { j.joinGroup(&jobpb.Join{}, submitterToo) }

// joinGroup is joinAll with further settings in m.
func (j *testJob) joinGroup(m *jobpb.Join, submitterToo bool) {
	j.Helper()
	m.Heartbeat, m.PeriodNs, m.GossipOnly = 1, int64(testPeriod), true
	var members []p2ppeer.ID
	for _, peer := range append(j.peers, j.submitter) {
		m.Group = append(m.Group, []byte(peer.ID()))
		members = append(members, peer.ID())
	}
	if submitterToo {
		group, err := j.submitter.detector.Join(faultdetect.GroupConfig{
			Job: jobpb.GroupAgain(j.spec.ID, m.Generation), Members: members, Self: len(members) - 1,
			Period: testPeriod, Offset: 1, Mode: faultdetect.Gossip, Verdict: func(faultdetect.Verdict) {},
		})
		if err != nil {
			j.Fatal(err)
		}
		j.Cleanup(group.Close)
	}
	j.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Join{Join: m}})
}

func TestJobEndsWhenTheSubmittersPeerHasFailed(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	j := newTestJob(t, 1, 2, nil, "sleep")
	j.start()
	j.joinAll(false) // the control streams stay open, but no heartbeat arrives
	for _, l := range j.links {
		l.awaitEnd()
	}
	j.gone()
}

func TestProcessesLearnTheToleratedHang(t *testing.T) {
	t.Parallel()
	j := newTestJob(t, 1, 1, nil, "bear")
	j.start()
	j.joinGroup(&jobpb.Join{HangNs: int64(40 * time.Second)}, true)
	j.awaitInitialized()
	j.begin()
	// Standard error, which is empty, may end before standard output is read.
	if got := j.links[0].outputFrom(view.Process{}, 1, 0); got != "bears 40s\n" {
		t.Errorf("a process writes %q in a job that tolerates 40 s", got)
	}
	j.stop()
}

// TestJobContinuesForAWhileWithoutItsSubmitter checks that a job with a view group continues for a while
// without its submitter, and after its return.
func TestJobContinuesForAWhileWithoutItsSubmitter(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	j := newTestJob(t, 1, 2, nil, "sleep")
	j.start()
	j.peers[0].meet(j.peers[1])
	j.peers[1].meet(j.peers[0])
	j.joinGroup(&jobpb.Join{Views: []uint32{2, 0, 1}}, false) // no heartbeat arrives
	for _, l := range j.links {
		s := await(l, (*jobpb.FromPeer).GetSuspect)
		if p2ppeer.ID(s.Peer) != j.submitter.ID() || s.Generation != 0 {
			t.Errorf("suspect %v", s)
		}
	}
	j.joinGroup(&jobpb.Join{Generation: 1}, true)
	j.stop()
}

func TestFailureOfAnotherPeerIsReported(t *testing.T) {
	t.Parallel()
	j := newTestJob(t, 1, 2, nil, "sleep")
	j.start()
	j.joinAll(true)
	j.peers[1].close()
	s := await(j.links[0], (*jobpb.FromPeer).GetSuspect)
	if got := p2ppeer.ID(s.Peer); got != j.peers[1].ID() {
		t.Errorf("suspect %v, want %v", got, j.peers[1].ID())
	}
	here := j.hosted(0)
	if got, want := answered(t, here, func() time.Duration { return here.liveness.programs.Hang() }), programHang(0, 2); got != want {
		t.Errorf("a program may leave its peer without an answer for %v, want %v", got, want)
	}
	j.links = j.links[:1]
	j.stop()
}

func TestProcessThatMisbehavesIsEnded(t *testing.T) {
	skip.Long(t)
	cases := map[string]struct {
		role   string
		reason string
	}{
		"writes nonsense to its line":   {"babble", "violated the protocol of its control socket: message of 1952999795 bytes, at most 131072 are allowed"},
		"speaks an older protocol":      {"old", fmt.Sprintf("the program speaks protocol %d, its peer %d", version.Protocol-1, version.Protocol)},
		"does not answer (V3: in 5 s)":  {"hang", "has not answered its peer for 5s"},
		"stops its supervisor and ends": {"stop", "its supervisor has not answered for 5s"},
		"is stopped before it joins":    {"stopped", "has been stopped for 5s"},
		"is stopped when it has left":   {"leave", "has been stopped for 5s"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newTestJob(t, 1, 1, nil, c.role)
			if c.role == "stop" { // a process in a PID namespace cannot stop its first process
				j.peers[0].launch.config.Sandbox = Sandbox{}
			}
			j.start()
			e := j.links[0].exited(view.Process{})
			if reason, _, _ := strings.Cut(e.Reason, " (of the last "); reason != c.reason || e.Signal != "killed" {
				t.Errorf("got %v, want reason %q", e, c.reason)
			}
			j.stop()
		})
	}
}

// O4: a program's messages cost its peer little processor time, however many it sends.
func TestO4ProgramMessagesAreRateLimited(t *testing.T) {
	t.Parallel()
	j := newTestJob(t, 1, 1, nil, "chatter")
	j.start()
	j.begin()
	var said, seconds float64
	out := j.links[0].output(view.Process{}, 1)
	if _, err := fmt.Sscan(out, &said, &seconds); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	const underWay = 2048 // messages in the socket's buffer
	if most := messagePace*(seconds+1)/minBurst + underWay; said > most {
		t.Errorf("the peer read %.0f messages in %.1f s, want at most %.0f", said, seconds, most)
	}
	if e := j.links[0].exited(view.Process{}); e.Code != 0 {
		t.Error(e)
	}
	j.stop()
}

func TestAbortReachesTheSubmitter(t *testing.T) {
	j := newTestJob(t, 1, 1, nil, "abort")
	j.start()
	if a := await(j.links[0], (*jobpb.FromPeer).GetAborted); a.Code != 7 || a.Reason != "enough" {
		t.Errorf("got %v", a)
	}
	j.links[0].exited(view.Process{})
	j.stop()
}

func TestUnrunnableProgramIsReported(t *testing.T) {
	bed := newTestbed(t, 1, 1)
	bed.program = filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(bed.program, []byte("not a program\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	j := bed.newJob(t, 1, 1, nil)
	j.prepare()
	j.tell(j.startMessage())
	if s := await(j.links[0], (*jobpb.FromPeer).GetStarted); !strings.Contains(s.Error, "exec format error") {
		t.Errorf("answer %q", s.Error)
	}
	j.links[0].awaitEnd()
	j.gone()
}

// TestSilentSubmitterKeepsNoSlots checks that a connected submitter that never starts a staged job is given
// up, unless it reports that it waits.
func TestSilentSubmitterKeepsNoSlots(t *testing.T) {
	t.Parallel()
	j := newTestJob(t, 1, 1, nil, "sleep")
	j.prepare()
	hosted := j.hosted(0)
	heard := func(ago time.Duration) {
		if !hosted.do(func() { hosted.presence.lastMessageAt = time.Now().Add(-ago) }) {
			t.Fatal("the job has ended")
		}
	}
	heard(startTimeout / 2)
	j.links[0].say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Emitted{Emitted: &jobpb.Emitted{}}})
	for !answered(t, hosted, func() bool { return time.Since(hosted.presence.lastMessageAt) < startTimeout/4 }) {
	}
	heard(2 * startTimeout)
	j.links[0].awaitEnd()
	j.gone()
}

package launch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

func TestPlainProgramRunsAndCleansUp(t *testing.T) {
	j := newTestJob(t, 2, 1, nil, "print", "line", "3", "5")
	j.start()
	if jobs := j.peers[0].launch.Jobs(); len(jobs) != 1 || jobs[0].State != Running || len(jobs[0].Processes) != 2 || jobs[0].Name != "prog" {
		t.Errorf("status %+v", jobs)
	}
	for rank := range 2 {
		p := view.Process{Rank: rank}
		if e := j.links[0].exited(p); e.Code != 5 || e.Signal != "" || e.Reason != "" || e.Initialized {
			t.Errorf("exit of %v: %v", p, e)
		}
		if got := j.links[0].output(p, 1); got != "line 0\nline 1\nline 2\n" {
			t.Errorf("stdout of %v: %q", p, got)
		}
		if got := j.links[0].output(p, 2); got != "complaint\n" {
			t.Errorf("stderr of %v: %q", p, got)
		}
	}
	j.stop()
}

func TestProcessesCommunicateAcrossPeers(t *testing.T) {
	j := newSpread(t, 3, "ring")
	j.startSpread()
	j.awaitInitialized()
	j.begin()
	j.follow(3)
	for rank := range 3 {
		l, p := j.links[rank%2], view.Process{Rank: rank}
		want := fmt.Sprintf("%d got \"hello of %d\" <nil>\n", rank, (rank+2)%3)
		if got := l.output(p, 1); got != want {
			t.Errorf("rank %d wrote %q, want %q", rank, got, want)
		}
		if e := l.exited(p); e.Code != 0 || !e.Initialized || !e.Finalized {
			t.Errorf("exit of %v: %v", p, e)
		}
	}
	j.stop()
}

// TestConnectionsOfAJobAreNotTrimmed checks that the connection managers of a job's peers protect the job's
// connections. They close others when there are too many.
func TestConnectionsOfAJobAreNotTrimmed(t *testing.T) {
	j := newSpread(t, 2, "ring")
	expect := func(want bool) {
		t.Helper()
		for _, p := range j.peers {
			for _, other := range append(j.peers, j.submitter) {
				if got := p.ConnManager().IsProtected(other.ID(), "launch "+j.spec.ID); got != want && p != other {
					t.Errorf("the connection of %s with %s is protected: %v, want %v", p.ID(), other.ID(), got, want)
				}
			}
		}
	}
	expect(false)
	j.startSpread()
	j.awaitInitialized()
	expect(true)
	j.begin()
	j.follow(2)
	j.stop()
	for _, p := range j.peers {
		p.checkNothingLeft(t)
	}
	expect(false)
}

// TestJobSurvivesConnectionTrimming makes many strangers connect to the peers of a job. The peers then close
// connections of strangers, not the job's.
func TestJobSurvivesConnectionTrimming(t *testing.T) {
	j := newSpread(t, 2, "ring")
	j.startSpread()
	j.awaitInitialized()
	const strangers = 4 * lowWater
	for range strangers {
		stranger, err := libp2p.New(libp2p.NoListenAddrs, libp2p.DisableRelay(), libp2p.DisableMetrics())
		if err != nil {
			t.Fatal(err)
		}
		defer stranger.Close()
		for _, p := range j.peers {
			if err := stranger.Connect(t.Context(), *host.InfoFromHost(p)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, p := range j.peers {
		p.ConnManager().TrimOpenConns(t.Context())
		connected := p.Network().Peers()
		if most := lowWater + len(j.peers); len(connected) > most {
			t.Errorf("%s is connected with %d, want at most %d", p.ID(), len(connected), most)
		}
		for _, other := range append(j.peers, j.submitter) {
			if p != other && !slices.Contains(connected, other.ID()) {
				t.Errorf("%s lost its connection to %s, a peer of its job", p.ID(), other.ID())
			}
		}
	}
	j.begin()
	j.follow(2)
	for rank := range 2 {
		if e := j.links[rank].exited(view.Process{Rank: rank}); e.Code != 0 || !e.Finalized {
			t.Errorf("exit of %d: %v", rank, e)
		}
	}
	j.stop()
}

// newSpread describes a job of n ranks, without replicas, on two peers.
func newSpread(t *testing.T, n int, args ...string) *testJob {
	t.Helper()
	bed := newTestbed(t, 2, n)
	j := bed.newJob(t, n, 1, nil, args...)
	j.peers = bed.peers
	return j
}

// startSpread starts the job with rank i on peer i mod 2.
func (j *testJob) startSpread() {
	j.Helper()
	j.startWhere(func(at int) (here []view.Process) {
		for rank := at; rank < j.spec.N; rank += len(j.peers) {
			here = append(here, view.Process{Rank: rank})
		}
		return here
	})
}

// startCrossed starts the job with replica k of rank i on peer (i+k) mod 2.
func (j *testJob) startCrossed() {
	j.Helper()
	j.startWhere(func(at int) (here []view.Process) {
		for rank := range j.spec.N {
			here = append(here, view.Process{Rank: rank, Replica: (rank + at) % 2})
		}
		return here
	})
}

// startWhere starts the job with the processes that where returns for each peer.
func (j *testJob) startWhere(where func(at int) []view.Process) {
	j.Helper()
	start := &jobpb.Start{View: jobpb.FromView(view.New(j.spec.N, j.spec.R)), Channels: j.channels, Explain: j.explain}
	for at, peer := range j.peers {
		m := j.prepareMessage(0, j.reserve(peer, j.spec.N))
		m.GetPrepare().Processes = nil
		for _, p := range where(at) {
			m.GetPrepare().Processes = append(m.GetPrepare().Processes, jobpb.FromProcess(p))
			start.Members = append(start.Members, j.member(p, peer))
		}
		l := j.connect(peer)
		l.processes = len(where(at))
		l.say(m)
		j.links = append(j.links, l)
	}
	for _, l := range j.links {
		if p := await(l, (*jobpb.FromPeer).GetPrepared); p.Error != "" {
			j.Fatal(p.Error)
		}
	}
	j.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Start{Start: start}})
	for _, l := range j.links {
		if s := await(l, (*jobpb.FromPeer).GetStarted); s.Error != "" {
			j.Fatal(s.Error)
		}
	}
}

// member returns a row of the membership table.
func (j *testJob) member(p view.Process, peer *member) *jobpb.Member {
	row := &jobpb.Member{Process: jobpb.FromProcess(p), Peer: []byte(peer.ID())}
	for _, a := range peer.Addrs() {
		row.Addrs = append(row.Addrs, a.Bytes())
	}
	return row
}

// follow sends views, as a submitter would, for the processes that finish, until n have. The job is on two
// peers.
func (j *testJob) follow(n int) {
	j.Helper()
	v := view.New(j.spec.N, j.spec.R)
	for timeout := time.After(eventTimeout); n > 0; {
		var l *testLink
		var m *jobpb.FromPeer
		select {
		case m = <-j.links[0].heard:
			l = j.links[0]
		case m = <-j.links[1].heard:
			l = j.links[1]
		case <-timeout:
			j.Fatalf("%d processes have not ended; received %v, %v", n, j.links[0].kept, j.links[1].kept)
		}
		l.kept = append(l.kept, m)
		if e := m.GetExited(); e != nil {
			v, _ = v.With(e.Process.View(), view.Finished)
			j.tellView(v)
			n--
		}
	}
}

// begin lets the processes leave mpj.Init.
func (j *testJob) begin() {
	j.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Begin{Begin: &jobpb.Begin{Keys: j.keys}}})
}

// awaitInitialized waits until every process has called mpj.Init, and stores their keys.
func (j *testJob) awaitInitialized() {
	j.Helper()
	j.keys = make([]byte, j.spec.N*j.spec.R*proclink.KeySize)
	for _, l := range j.links {
		for range l.processes {
			m := await(l, (*jobpb.FromPeer).GetInitialized)
			p := m.Process.View()
			copy(j.keys[(p.Rank*j.spec.R+p.Replica)*proclink.KeySize:], m.Key)
		}
	}
}

func TestFilesAreStagedAndCollected(t *testing.T) {
	j := newTestJob(t, 1, 1, map[string]string{"in/data": "flour"}, "files")
	j.start()
	p := view.Process{}
	if e := j.links[0].exited(p); e.Code != 0 {
		t.Fatalf("%v %q", e, j.links[0].output(p, 1))
	}
	m := j.collected(p, "*.out")
	if len(m) != 1 || m[0].Path != "result.out" {
		t.Fatalf("collected %v", m)
	}
	if err := j.submitter.files.Fetch(t.Context(), j.peers[0].ID(), j.spec.ID, m.Wants(), nil); err != nil {
		t.Fatal(err)
	}
	j.stop()
}

// collected returns the manifest of the output files that a process's peer offers.
func (j *testJob) collected(p view.Process, pattern string) filetransfer.Manifest {
	j.Helper()
	j.links[0].say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Collect{Collect: &jobpb.Collect{
		Process: jobpb.FromProcess(p), Patterns: []string{pattern},
	}}})
	c := await(j.links[0], (*jobpb.FromPeer).GetCollected)
	m, err := filetransfer.UnmarshalManifest(c.Manifest)
	if err != nil || c.Error != "" {
		j.Fatalf("collected %q, %v", c.Error, err)
	}
	return m
}

func TestR6OnlyTheOutputLeaderSendsOutput(t *testing.T) {
	j := newTestJob(t, 1, 2, nil, "print", "line", "3", "0")
	j.start()
	p, q := view.Process{}, view.Process{Replica: 1}
	if got := j.links[0].output(p, 1); strings.Count(got, "\n") != 3 {
		t.Errorf("master wrote %q", got)
	}
	j.links[1].exited(q)
	for _, m := range j.links[1].kept {
		if m.GetOutput() != nil {
			t.Errorf("a replica that is not the output leader sent %v", m)
		}
	}
	// The user has received two lines when the master's peer fails.
	j.links[1].say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Emitted{Emitted: &jobpb.Emitted{Stdout: 2}}})
	failed, _ := view.New(1, 2).With(p, view.Failed)
	j.tellView(failed)
	if got, want := j.links[1].outputFrom(q, 1, 2), "line 2\n"; got != want {
		t.Errorf("new output leader sent %q from record 2 on, want %q", got, want)
	}
	j.stop()
}

func TestR5ProcessOutsideTheViewIsKilledQuietly(t *testing.T) {
	j := newTestJob(t, 2, 1, nil, "sleep")
	j.start()
	p := view.Process{Rank: 1}
	await(j.links[0], (*jobpb.FromPeer).GetOutput)
	v, _ := view.New(2, 1).With(p, view.Failed)
	j.tellView(v)
	j.stop()
	for _, m := range j.links[0].kept {
		if m.GetExited() != nil {
			t.Errorf("the submitter was told: %v", m)
		}
	}
}

// TestR5ChannelsToAFailedProcessBreak checks that a sender learns of the failure at once, although the
// failed process and its peer are reachable and silent. If the processes hold the channel themselves, the
// engine breaks it when the view arrives.
func TestR5ChannelsToAFailedProcessBreak(t *testing.T) {
	bed := newTestbed(t, 2, 2)
	j := bed.newJob(t, 2, 2, nil, "hold")
	j.channels = []string{"stream"}
	j.startCrossed() // 0.0 and 1.1 on the first peer, 1.0 and 0.1 on the second
	j.awaitInitialized()
	p := view.Process{}
	j.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Begin{Begin: &jobpb.Begin{Keys: j.keys}}})
	await(j.links[0], (*jobpb.FromPeer).GetOutput)
	failed, _ := view.New(2, 2).With(view.Process{Rank: 1}, view.Failed)
	j.links[0].say(&jobpb.ToPeer{Body: &jobpb.ToPeer_View{View: jobpb.FromView(failed)}})
	j.links[0].exited(p)
	if got, want := j.links[0].outputFrom(p, 1, 1), "broken\nthen: process 1.0 is not in the view\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
	j.stop()
}

func TestBackPressureBlocksTheProgram(t *testing.T) {
	j := newTestJob(t, 1, 1, nil, "print", strings.Repeat("x", 1000), "10000", "0")
	j.start()
	// Ten megabytes, of which the peer holds one at a time.
	got := j.links[0].output(view.Process{}, 1)
	if n := strings.Count(got, "\n"); n != 10000 {
		t.Errorf("received %d lines", n)
	}
	j.stop()
}

// TestWaitingPeerSendsHeartbeats checks that the peer reports its presence. Otherwise a
// submitter could not distinguish waiting from a lost peer.
func TestWaitingPeerSendsHeartbeats(t *testing.T) {
	j := newTestJob(t, 1, 1, nil, "sleep")
	j.prepare()
	j.links[0].kept = nil
	await(j.links[0], (*jobpb.FromPeer).GetStaging)
	j.stop()
}

// TestStartedPeerSendsHeartbeats checks that the peer continues to report its presence, since
// the fault detector may not have heard from it yet.
func TestStartedPeerSendsHeartbeats(t *testing.T) {
	j := newTestJob(t, 1, 1, nil, "sleep")
	j.start()
	j.joinAll(true)
	j.links[0].kept = nil
	await(j.links[0], (*jobpb.FromPeer).GetStaging)
	await(j.links[0], (*jobpb.FromPeer).GetStaging)
	j.stop()
}

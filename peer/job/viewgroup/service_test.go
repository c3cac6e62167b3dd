package viewgroup

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/x/simlibp2p"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/marcopolo/simnet"
	"github.com/rs/zerolog"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A testGroup is a job's group of real libp2p hosts on a simulated network, in virtual time.
type testGroup struct {
	t        *testing.T
	hosts    []host.Host
	ids      []p2ppeer.ID
	services []*Service
	groups   []*Group
	keys     []crypto.PrivKey
	first    int // number of first peers

	mu    sync.Mutex
	views []view.View // by peer
	told  [][]Contact // by peer
	rows  [][]byte    // by peer: row of the last newcomer
}

// inGroup runs test with the peers of a job, which have not joined yet.
func inGroup(t *testing.T, n int, test func(*testGroup)) {
	virtualtime.Test(t, func(t *testing.T) {
		link := simnet.LinkSettings{BitsPerSecond: 20 * simlibp2p.OneMbps}
		network, meta, err := simlibp2p.SimpleLibp2pNetwork([]simlibp2p.NodeLinkSettingsAndCount{
			{LinkSettings: simnet.NodeBiDiLinkSettings{Downlink: link, Uplink: link}, Count: n},
		}, simnet.StaticLatency(10*time.Millisecond), simlibp2p.NetworkSettings{})
		if err != nil {
			t.Fatal(err)
		}
		network.Start()
		defer network.Close()
		g := &testGroup{t: t, hosts: meta.Nodes, views: make([]view.View, n), told: make([][]Contact, n), rows: make([][]byte, n), first: n, groups: make([]*Group, n)}
		for _, h := range g.hosts {
			g.ids = append(g.ids, h.ID())
			g.keys = append(g.keys, h.Peerstore().PrivKey(h.ID()))
			for _, other := range g.hosts {
				h.Peerstore().AddAddrs(other.ID(), other.Addrs(), time.Hour)
			}
			g.services = append(g.services, NewService(h, zerolog.Nop()))
		}
		test(g)
		for i := range g.hosts {
			g.leave(i)
		}
	})
}

func (g *testGroup) join(self int) {
	g.t.Helper()
	g.joinAs(self, self, g.ids[:max(g.first, self+1)], nil)
}

// resume makes the submitter's peer, which has left the group, join it as a new process.
func (g *testGroup) resume() (own Newcomer) {
	g.t.Helper()
	own = Newcomer{Peer: g.first, ID: g.ids[0], Process: NoProcess}
	if err := own.Sign(g.keys[0], "a job"); err != nil {
		g.t.Fatal(err)
	}
	g.mu.Lock()
	g.views[0] = view.View{}
	g.mu.Unlock()
	g.joinAs(0, own.Peer, append(slices.Clone(g.ids[:g.first]), own.ID), &own)
	return own
}

// joinAs makes a peer join under a number; peers are the IDs that it knows.
func (g *testGroup) joinAs(self, number int, peers []p2ppeer.ID, own *Newcomer) {
	g.t.Helper()
	n := g.first
	var err error
	g.groups[self], err = g.services[self].Join(GroupConfig{
		Job: "a job", Peers: peers, First: n, Members: Members(n), Self: number, View: view.New(n-1, 1), RunsOn: runsOn(n), Introduction: own,
		Committed: func(cs []Committed, v view.View) {
			g.mu.Lock()
			defer g.mu.Unlock()
			after := g.views[self]
			for _, c := range cs {
				if next, changed := c.Change.Apply(after); after.N > 0 && !changed {
					g.t.Errorf("peer %d: epoch %d comes twice", self, c.Epoch)
				} else {
					after = next
				}
			}
			if after.N > 0 && !reflect.DeepEqual(after, v) {
				g.t.Errorf("peer %d: %v, told of as %v", self, after, v)
			}
			g.views[self] = v
		},
		Came: func(n Newcomer) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.rows[self] = n.Row
		},
		Contact: func(c Contact) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.told[self] = append(g.told[self], c)
		},
	})
	if err != nil {
		g.t.Fatal(err)
	}
}

// leave stops a peer.
func (g *testGroup) leave(i int) {
	if err := g.services[i].Close(); err != nil {
		g.t.Error(err)
	}
	_ = g.hosts[i].Close()
}

// fail makes peer i forward the submitter's proposal to fail a rank.
func (g *testGroup) fail(i, rank int) {
	g.t.Helper()
	p, err := Sign(g.keys[0], "a job", submitterPeer, view.Change{Process: view.Process{Rank: rank}, To: view.Failed})
	if err != nil {
		g.t.Fatal(err)
	}
	g.groups[i].forward(p)
}

// wantAgreed checks that these peers have equal views, in which the given number of processes has failed.
func (g *testGroup) wantAgreed(failed int, peers ...int) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, i := range peers {
		v := g.views[i]
		n := 0
		for _, p := range v.Processes() {
			if !v.Has(p) {
				n++
			}
		}
		if n != failed || !reflect.DeepEqual(v, g.views[peers[0]]) {
			g.t.Errorf("V1: peer %d has %v, peer %d %v; want %d failed", i, v, peers[0], g.views[peers[0]], failed)
		}
	}
}

func TestV1AllPeersGetTheSameViews(t *testing.T) {
	inGroup(t, 6, func(g *testGroup) {
		g.join(0)
		g.fail(0, 2) // before any other peer has joined
		time.Sleep(200 * time.Millisecond)
		for i := 1; i < 6; i++ {
			g.join(i)
		}
		time.Sleep(time.Second)
		g.wantAgreed(1, 0, 1, 2, 3, 4, 5)
		g.fail(5, 3)
		g.fail(0, 3)
		g.fail(4, 0)
		time.Sleep(time.Second)
		g.wantAgreed(3, 0, 1, 2, 3, 4, 5)
	})
}

// manyElections is enough time to elect a leader when two of three peers are left. Both may become
// candidates at the same time and get one vote each, then wait for random times and try again. Of 1,400
// elections one took four times as long as one without a split vote.
const manyElections = 20 * electionTicks * TickPeriod

func TestGroupContinuesWithoutTheSubmitter(t *testing.T) {
	inGroup(t, 3, func(g *testGroup) {
		for i := range 3 {
			g.join(i)
		}
		time.Sleep(time.Second)
		g.leave(0)
		g.fail(2, 0)
		time.Sleep(manyElections)
		g.wantAgreed(1, 1, 2)
		if slices.Contains(slices.Concat(g.told[1], g.told[2]), CutOff) {
			g.t.Error("a majority is cut off")
		}
	})
}

func TestV2PartitionedPeersAreNotified(t *testing.T) {
	inGroup(t, 3, func(g *testGroup) {
		for i := range 3 {
			g.join(i)
		}
		time.Sleep(time.Second)
		g.leave(1)
		g.leave(2)
		g.fail(0, 0)
		time.Sleep((4*electionTicks + cutOffTicks) * TickPeriod)
		g.wantAgreed(0, 0)
		if want := []Contact{Absent, CutOff}; !slices.Equal(g.told[0], want) {
			g.t.Errorf("the submitter's peer is told %v, want %v", g.told[0], want)
		}
	})
}

// TestO4StrangersAreRefused checks that messages are refused if the sender is not a peer of the job, names
// another job, or uses another peer's number.
func TestO4StrangersAreRefused(t *testing.T) {
	inGroup(t, 3, func(g *testGroup) {
		for i := range 3 {
			g.join(i)
		}
		time.Sleep(time.Second)
		for _, job := range []string{"", "another job", "a job"} {
			stream, err := g.hosts[2].NewStream(g.t.Context(), g.ids[1], Protocol)
			if err != nil {
				g.t.Fatal(err)
			}
			w := pbio.NewDelimitedWriter(stream)
			lie := wrap(&raftpb.Message{From: new(uint64(1)), To: new(uint64(2)), Term: new(uint64(99)), Type: raftpb.MsgHup.Enum()})
			if err := w.WriteMsg(&pb.Hello{Job: job}); err != nil {
				g.t.Fatal(err)
			}
			_ = w.WriteMsg(lie)
			time.Sleep(2 * joinTimeout)
			_ = stream.Reset()
		}
		g.fail(0, 0)
		time.Sleep(time.Second)
		g.wantAgreed(1, 0, 1, 2)
	})
}

// invented returns n peers, the first of which are those given.
func invented(are []p2ppeer.ID, n int) []p2ppeer.ID {
	all := slices.Clone(are)
	for i := len(are); i < n; i++ {
		all = append(all, p2ppeer.ID(strconv.Itoa(i)))
	}
	return all
}

func TestJoinRefusesInvalidGroups(t *testing.T) {
	inGroup(t, 3, func(g *testGroup) {
		good := func() GroupConfig {
			return GroupConfig{Job: "job", Peers: g.ids, First: 3, Members: 3, View: view.New(2, 1), RunsOn: runsOn(3)}
		}
		cases := map[string]func(*GroupConfig){
			"no job":         func(c *GroupConfig) { c.Job = "" },
			"not this peer":  func(c *GroupConfig) { c.Self = 1 },
			"nobody":         func(c *GroupConfig) { c.Self = 3 },
			"a peer twice":   func(c *GroupConfig) { c.Peers = []p2ppeer.ID{g.ids[0], g.ids[1], g.ids[1]} },
			"many peers":     func(c *GroupConfig) { c.Peers = invented(c.Peers, maxPeers+1); c.First = maxPeers + 1 },
			"many that come": func(c *GroupConfig) { c.Peers = invented(c.Peers, 2*maxPeers+1) },
			"no members":     func(c *GroupConfig) { c.Members = 0 },
			"many members":   func(c *GroupConfig) { c.Members = 4 },
			"no view":        func(c *GroupConfig) { c.View = view.View{} },
			"process nobody": func(c *GroupConfig) { c.RunsOn = map[view.Process]int{{}: 3} },
		}
		for name, spoil := range cases {
			c := good()
			spoil(&c)
			if group, err := g.services[0].Join(c); err == nil {
				g.t.Errorf("%s: joined", name)
				group.Close()
			}
		}
	})
}

// TestNewcomerGetsTheViews checks that a newcomer receives all views from the first, and votes in place of
// a lost peer. Two of three first peers are lost, one after the other.
func TestNewcomerGetsTheViews(t *testing.T) {
	inGroup(t, 4, func(g *testGroup) {
		g.first = 3
		for i := range 3 {
			g.join(i)
		}
		g.fail(1, 1)
		time.Sleep(time.Second)
		g.leave(2)
		g.groups[0].Gone(g.ids[2])
		p := view.Process{Replica: 1}
		n := Newcomer{Peer: 3, ID: g.ids[3], Process: p, Row: []byte("row")}
		if err := n.Sign(g.keys[0], "a job"); err != nil {
			t.Fatal(err)
		}
		g.groups[0].Introduce(n)
		g.groups[0].Propose(view.Change{Process: p})
		g.join(3)
		time.Sleep(2 * time.Second)
		if !g.groups[0].Votes(g.ids[3]) || g.groups[0].Voters() != 3 || string(g.rows[1]) != "row" {
			t.Errorf("the newcomer votes: %v, one of %d voters; peer 1 has the row %q", g.groups[0].Votes(g.ids[3]), g.groups[0].Voters(), g.rows[1])
		}
		g.leave(0)
		g.fail(1, 0)
		time.Sleep(manyElections)
		g.wantAgreed(2, 1, 3)
	})
}

// TestResumedSubmitterIsIntroducedOnce connects a new process of the submitter to real peers. Another peer cannot
// introduce itself as one.
func TestResumedSubmitterIsIntroducedOnce(t *testing.T) {
	inGroup(t, 3, func(g *testGroup) {
		for i := range 3 {
			g.join(i)
		}
		g.fail(1, 1)
		time.Sleep(time.Second)
		g.groups[0].Close()
		time.Sleep(time.Second)
		own := g.resume()
		time.Sleep(manyElections)
		g.groups[0].Propose(view.Change{Process: view.Process{Rank: 0}, To: view.Failed})
		time.Sleep(2 * time.Second)
		g.wantAgreed(2, 0, 1, 2)
		if !g.groups[0].Leads() || g.groups[1].Voters() != 3 || !g.groups[1].Votes(g.ids[0]) {
			t.Errorf("the new process leads: %v; it votes: %v, one of %d voters", g.groups[0].Leads(), g.groups[1].Votes(g.ids[0]), g.groups[1].Voters())
		}
		g.groups[1].meetSubmitter(own.Peer+1, own.Signature) // signed for another number
		if _, known := g.groups[1].IDOf(own.Peer + 1); known {
			t.Error("a number is known that the submitter has not signed")
		}
	})
}

// TestStreamIsReplacedAfterARenumbering connects a peer with a new number to one that still knows its old
// number. The stream with messages of the other number ends, and the peer opens a new one.
func TestStreamIsReplacedAfterARenumbering(t *testing.T) {
	inGroup(t, 3, func(g *testGroup) {
		g.join(1)
		stream, err := g.hosts[2].NewStream(g.t.Context(), g.ids[1], Protocol)
		if err != nil {
			g.t.Fatal(err)
		}
		w := pbio.NewDelimitedWriter(stream)
		if err := w.WriteMsg(&pb.Hello{Job: "a job"}); err != nil {
			g.t.Fatal(err)
		}
		again := wrap(&raftpb.Message{From: new(uint64(8)), To: new(uint64(2)), Term: new(uint64(1)), Type: raftpb.MsgHeartbeat.Enum()})
		if err := w.WriteMsg(again); err != nil {
			g.t.Fatal(err)
		}
		_ = stream.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := stream.Read(make([]byte, 1)); !errors.Is(err, network.ErrReset) {
			g.t.Errorf("the stream goes on: %v", err)
		}
	})
}

// TestV4ProposalsForOtherPeersAreRejected uses the keys of real peers. One of them proposes failures of
// other peers and the end of a process, in its own name and in the submitter's, without effect.
func TestV4ProposalsForOtherPeersAreRejected(t *testing.T) {
	inGroup(t, 4, func(g *testGroup) {
		for i := range 4 {
			g.join(i)
		}
		time.Sleep(time.Second)
		for _, c := range []view.Change{
			{Process: view.Process{Rank: 1}, To: view.Failed}, {Process: view.Process{Rank: 2}, To: view.Failed},
			{Process: view.Process{Rank: 1}, To: view.Finished}, {Process: view.Process{Replica: 1}},
		} {
			g.groups[1].Propose(c)
			forged, err := Sign(g.keys[1], "a job", submitterPeer, c)
			if err != nil {
				t.Fatal(err)
			}
			g.groups[1].forward(forged)
		}
		time.Sleep(time.Second)
		g.fail(0, 0) // the first effective change
		time.Sleep(time.Second)
		g.wantAgreed(1, 0, 1, 2, 3)
		for i, v := range g.views {
			if v.Epoch != 2 {
				t.Errorf("peer %d is at epoch %d", i, v.Epoch)
			}
		}
	})
}

// TestLeavingPeersKeepTheMajority ends the job at two of three voters, and then the submitter, in the same second. The
// group continues.
func TestLeavingPeersKeepTheMajority(t *testing.T) {
	inGroup(t, 4, func(g *testGroup) {
		for i := range 4 {
			g.join(i)
		}
		time.Sleep(time.Second)
		g.groups[1].Leave()
		g.groups[2].Leave()
		time.Sleep(100 * time.Millisecond)
		g.leave(0)
		time.Sleep(leaveTicks * TickPeriod)
		g.wantAgreed(2, 3)
		if n := g.groups[3].Voters(); n != 1 || !g.groups[3].Votes(g.ids[3]) || g.groups[3].Contact() != InTouch {
			t.Errorf("%d voters, contact %v", n, g.groups[3].Contact())
		}
		for i := 1; i < 3; i++ {
			if left := g.services[i].leaving(); len(left) > 0 {
				t.Errorf("peer %d is still in the group", i)
			}
		}
	})
}

// TestCloseLetsALeaderReplaceAVoter ends two of three voters at the same time. Close waits until the submitter's peer
// has replaced the first one.
func TestCloseLetsALeaderReplaceAVoter(t *testing.T) {
	inGroup(t, 5, func(g *testGroup) {
		g.first = 4
		for i := range 4 {
			g.join(i)
		}
		time.Sleep(time.Second)
		for i := 1; i < 3; i++ {
			g.groups[i].Leave()
			g.groups[0].Gone(g.ids[i]) // the submitter notices the end of the job
			g.fail(0, i-1)
		}
		began := time.Now()
		done := make(chan bool)
		for i := 1; i < 3; i++ {
			go func() { g.leave(i); done <- true }()
		}
		<-done
		<-done
		if took := time.Since(began); took > 2*leaveTimeout {
			t.Errorf("Close took %v", took)
		}
		g.fail(0, 2)
		time.Sleep(3 * time.Second)
		g.wantAgreed(3, 0, 3)
	})
}

// TestPeerComesAgainWhileItLeaves checks that Join ends a group that this peer leaves for the same job.
func TestPeerComesAgainWhileItLeaves(t *testing.T) {
	inGroup(t, 3, func(g *testGroup) {
		for i := range 3 {
			g.join(i)
		}
		time.Sleep(time.Second)
		g.leave(0)
		g.groups[1].Leave()
		time.Sleep(500 * time.Millisecond)
		if left := g.services[1].leaving(); len(left) != 1 {
			t.Errorf("%d groups are left, want 1", len(left))
		}
		g.views[1] = view.View{}
		g.join(1)
		if left := g.services[1].leaving(); len(left) != 0 {
			t.Error("the former group is still there")
		}
	})
}

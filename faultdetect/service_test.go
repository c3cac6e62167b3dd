package faultdetect

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/x/simlibp2p"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/marcopolo/simnet"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/faultdetect/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A testGroup is a job's group of real libp2p hosts on a simulated network, in virtual time.
type testGroup struct {
	t        *testing.T
	hosts    []host.Host
	services []*Service
	groups   []*Group

	mu       sync.Mutex
	verdicts [][]Verdict // by observer
}

// inGroup runs test with a group of n that has been gossiping for so long that the allowances of the links, which begin
// with the delay of connecting, are the least ones.
func inGroup(t *testing.T, n int, test func(*testing.T, *testGroup)) {
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
		g := &testGroup{t: t, hosts: meta.Nodes, verdicts: make([][]Verdict, n)}
		defer g.close()
		g.join()
		time.Sleep(80 * DefaultPeriod)
		for i, v := range g.told() {
			if len(v) > 0 {
				t.Errorf("before anything happened, member %d: %+v", i, v)
			}
		}
		test(t, g)
	})
}

func (g *testGroup) join() {
	var ids []p2ppeer.ID
	for _, h := range g.hosts {
		ids = append(ids, h.ID())
		for _, other := range g.hosts {
			h.Peerstore().AddAddrs(other.ID(), other.Addrs(), time.Hour)
		}
	}
	for i, h := range g.hosts {
		s := NewService(h, zerolog.Nop())
		group, err := s.Join(GroupConfig{Job: "a job", Members: ids, Self: i, Offset: 1000, Verdict: func(v Verdict) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.verdicts[i] = append(g.verdicts[i], v)
		}})
		if err != nil {
			g.t.Fatal(err)
		}
		g.services, g.groups = append(g.services, s), append(g.groups, group)
	}
}

func (g *testGroup) told() [][]Verdict {
	g.mu.Lock()
	defer g.mu.Unlock()
	told := make([][]Verdict, len(g.verdicts))
	for i := range told {
		told[i] = append(told[i], g.verdicts[i]...)
	}
	return told
}

func (g *testGroup) close() {
	for i := range g.hosts {
		if err := g.services[i].Close(); err != nil {
			g.t.Error(err)
		}
		_ = g.hosts[i].Close()
	}
}

// wantFailed checks that all remaining members have failed exactly the given ones.
func (g *testGroup) wantFailed(gone ...int) {
	g.t.Helper()
	is := map[int]bool{}
	for _, i := range gone {
		is[i] = true
	}
	for i, verdicts := range g.told() {
		failed := map[int]bool{}
		for _, v := range verdicts {
			failed[v.Member] = failed[v.Member] || v.State == Failed
		}
		for j := range g.hosts {
			if !is[i] && i != j && failed[j] != is[j] {
				g.t.Errorf("member %d is failed at %d: %v, want %v", j, i, failed[j], is[j])
			}
		}
	}
}

func TestF1ClosedHostFailsAtAllOthers(t *testing.T) {
	inGroup(t, 4, func(t *testing.T, g *testGroup) {
		_ = g.hosts[2].Close()
		time.Sleep(time.Duration(DBRR.Rounds(4)+2) * DefaultPeriod)
		g.wantFailed(2)
		_ = g.hosts[0].Close()
		time.Sleep(time.Duration(DBRR.Rounds(4)+2) * DefaultPeriod)
		g.wantFailed(2, 0)
	})
}

func TestF1LeavingMemberFails(t *testing.T) {
	inGroup(t, 4, func(t *testing.T, g *testGroup) {
		g.groups[1].Close()
		time.Sleep(time.Duration(DBRR.Rounds(4)+2) * DefaultPeriod)
		g.wantFailed(1)
	})
}

// TestF1FastDetectsWithinThreePeriods: a member becomes silent while its host is alive; the time does not
// depend on the size of the group.
func TestF1FastDetectsWithinThreePeriods(t *testing.T) {
	inGroup(t, 8, func(t *testing.T, g *testGroup) {
		g.groups[5].Close()
		time.Sleep(3*DefaultPeriod + DefaultPeriod/4) // plus transit time
		g.wantFailed(5)
	})
}

// TestF2GoneMemberIsKnownToAllWithinASecond: one member has observed the end of another, and reports it.
func TestF2GoneMemberIsKnownToAllWithinASecond(t *testing.T) {
	inGroup(t, 8, func(t *testing.T, g *testGroup) {
		g.groups[5].Close()
		g.groups[0].Gone(g.hosts[5].ID())
		time.Sleep(time.Second)
		g.wantFailed(5)
	})
}

func TestV3MemberReportedGoneThatAnswersIsFailedByTheReporterOnly(t *testing.T) {
	inGroup(t, 4, func(t *testing.T, g *testGroup) {
		g.groups[0].Gone(g.hosts[3].ID())
		time.Sleep(DefaultPeriod)
		for i, verdicts := range g.told() {
			for _, v := range verdicts {
				if v.State == Failed && i != 0 {
					t.Errorf("member %d is failed at %d", v.Member, i)
				}
			}
		}
	})
}

func TestV3ReportedMemberThatAnswersIsLive(t *testing.T) {
	inGroup(t, 4, func(t *testing.T, g *testGroup) {
		g.groups[0].Report(g.hosts[3].ID())
		g.groups[0].Report(g.hosts[0].ID()) // a report about this peer has no effect
		time.Sleep(20 * DefaultPeriod)
		g.wantFailed()
		states := []State{}
		for _, v := range g.told()[0] {
			states = append(states, v.State)
		}
		if len(states) != 2 || states[0] != Suspect || states[1] != Live {
			t.Errorf("the verdicts are %v, want suspect, live", states)
		}
	})
}

func TestF1ReportedMemberFailsWithinTwoPeriods(t *testing.T) {
	inGroup(t, 4, func(t *testing.T, g *testGroup) {
		_ = g.hosts[3].Close()
		g.groups[0].Report(g.hosts[3].ID())
		time.Sleep(2 * DefaultPeriod)
		told := g.told()[0]
		if len(told) != 2 || told[1].State != Failed || told[1].Member != 3 {
			t.Errorf("the verdicts are %+v, want member 3 suspect and failed", told)
		}
	})
}

// TestO4StrangersAndInvalidMessagesAreRefused sends data that no correct member sends: the stream is reset,
// without effect on others.
func TestO4StrangersAndInvalidMessagesAreRefused(t *testing.T) {
	inGroup(t, 3, func(t *testing.T, g *testGroup) {
		tests := map[string][]byte{
			"not a hello":    {0xff, 0xff, 0xff, 0xff, 0x0f},
			"long hello":     append([]byte{0xff, 0x7f}, make([]byte, 100)...),
			"unknown job":    frame(t, &pb.Hello{Job: "another"}),
			"too long beat":  append(frame(t, &pb.Hello{Job: "a job"}), 0xff, 0xff, 0x03),
			"wrong table":    append(frame(t, &pb.Hello{Job: "a job"}), frame(t, &pb.Beat{Kind: pb.Beat_TABLE, Lag: make([]int64, 9)})...),
			"flood of pings": append(frame(t, &pb.Hello{Job: "a job"}), flood(t)...),
		}
		for name, raw := range tests {
			stream, err := g.hosts[1].NewStream(t.Context(), g.hosts[0].ID(), Protocol)
			if err != nil {
				t.Fatal(err)
			}
			_ = stream.SetDeadline(time.Now().Add(time.Minute))
			_, _ = stream.Write(raw) // may be refused before its end
			if _, err := stream.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) || isTimeout(err) {
				t.Errorf("%s: read returned %v, want a reset", name, err)
			}
		}
		time.Sleep(20 * DefaultPeriod)
		g.wantFailed()
	})
}

func isTimeout(err error) bool {
	t, ok := err.(interface{ Timeout() bool })
	return ok && t.Timeout()
}

func frame(t *testing.T, m proto.Message) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := pbio.NewDelimitedWriter(&b).WriteMsg(m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func flood(t *testing.T) (raw []byte) {
	for range 2 * maxBeats(3) {
		raw = append(raw, frame(t, &pb.Beat{Kind: pb.Beat_PING})...)
	}
	return raw
}

// TestV3LateMemberIsWaitedFor delays one member's start message; until then it refuses the others'
// streams.
func TestV3LateMemberIsWaitedFor(t *testing.T) {
	inGroup(t, 4, func(t *testing.T, g *testGroup) {
		ids := g.groups[0].peers
		join := func(i int) *Group {
			group, err := g.services[i].Join(GroupConfig{Job: "late", Members: ids, Self: i, Verdict: func(v Verdict) {
				if v.State == Failed {
					t.Errorf("member %d failed at %d", v.Member, i)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			return group
		}
		var groups []*Group
		for i := range 3 {
			groups = append(groups, join(i))
		}
		time.Sleep((startGrace - 1) * DefaultPeriod)
		groups = append(groups, join(3))
		time.Sleep(40 * DefaultPeriod)
		for _, group := range groups {
			group.Close()
		}
	})
}

func TestJoinRefusesWrongGroups(t *testing.T) {
	inGroup(t, 3, func(t *testing.T, g *testGroup) {
		ids := g.groups[0].peers
		for name, spoil := range map[string]func(*GroupConfig){
			"no job":          func(c *GroupConfig) { c.Job = "" },
			"long job":        func(c *GroupConfig) { c.Job = string(make([]byte, maxHello)) },
			"already joined":  func(c *GroupConfig) { c.Job = "a job" },
			"another member":  func(c *GroupConfig) { c.Self = 1 },
			"self outside":    func(c *GroupConfig) { c.Self = 3 },
			"a member twice":  func(c *GroupConfig) { c.Members = []p2ppeer.ID{ids[0], ids[1], ids[1]} },
			"no verdict":      func(c *GroupConfig) { c.Verdict = nil },
			"negative period": func(c *GroupConfig) { c.Period = -1 },
		} {
			c := GroupConfig{Job: "another", Members: ids, Verdict: func(Verdict) {}}
			spoil(&c)
			if _, err := g.services[0].Join(c); err == nil {
				t.Errorf("%s: joined", name)
			}
		}
		if err := g.services[0].Close(); err != nil {
			t.Error(err)
		}
		_, err := g.services[0].Join(GroupConfig{Job: "another", Members: ids, Verdict: func(Verdict) {}})
		if !errors.Is(err, errClosed) {
			t.Errorf("after Close: %v, want errClosed", err)
		}
	})
}

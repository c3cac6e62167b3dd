package submit

import (
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// newHearing returns a running job of 2 ranks and 2 replicas, each process on a peer of its own.
// The peers do not exist; a test passes their messages.
func newHearing(t testing.TB) *execution {
	h, err := libp2p.New(libp2p.NoListenAddrs, libp2p.DisableRelay(), libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	j := &run{s: &Submitter{cfg: Config{Host: h, Key: h.Peerstore().PrivKey(h.ID())}}, req: Request{N: 2, R: 2, Outputs: []string{"*"}}}
	j.events = Showing(func(Event) error { return nil })
	t.Cleanup(j.events.finish)
	reserved := &reservation.Reservation{}
	for _, p := range view.New(2, 2).Processes() {
		reserved.Placements = append(reserved.Placements, reservation.Placement{Peer: p2ppeer.ID("peer " + p.String()), Processes: []view.Process{p}})
	}
	return newExecution(j, reserved)
}

func TestReportsAboutOtherPeersProcessesAreRejected(t *testing.T) {
	p := jobpb.FromProcess(view.Process{Rank: 1})
	for name, m := range map[string]*jobpb.FromPeer{
		"exited":    {Body: &jobpb.FromPeer_Exited{Exited: &jobpb.Exited{Process: p, Code: 1}}},
		"aborted":   {Body: &jobpb.FromPeer_Aborted{Aborted: &jobpb.Aborted{Process: p}}},
		"output":    {Body: &jobpb.FromPeer_Output{Output: &jobpb.Output{Process: p, Stream: 1}}},
		"collected": {Body: &jobpb.FromPeer_Collected{Collected: &jobpb.Collected{Process: p}}},
		"ahead":     {Body: &jobpb.FromPeer_Ahead{Ahead: &jobpb.Ahead{Process: p}}},
		"stalled":   {Body: &jobpb.FromPeer_Stalled{Stalled: &jobpb.Stalled{Process: p}}},
		"upToDate":  {Body: &jobpb.FromPeer_UpToDate{UpToDate: &jobpb.UpToDate{Process: p, Since: 2, Term: 1}}},
		"leaving":   {Body: &jobpb.FromPeer_Leaving{Leaving: &jobpb.Leaving{Process: p}}},
		"diverged":  {Body: &jobpb.FromPeer_Diverged{Diverged: &jobpb.Diverged{Process: p, Receiver: &jobpb.Process{}, Seq: 1}}},
		"account":   {Body: &jobpb.FromPeer_Account{Account: &jobpb.Account{Process: p}}},
		"nothing":   {},
	} {
		t.Run(name, func(t *testing.T) {
			e := newHearing(t)
			liar := e.peers.links[0]
			if r := e.handle(received{link: liar, msg: m}); r != nil || liar.err == nil {
				t.Errorf("result %v, link %v; want the liar lost", r, liar.err)
			}
			if v := e.state.View(); !v.Live(p.View()) || v.State(view.Process{}) != view.Failed {
				t.Errorf("view %v", v)
			}
		})
	}
}

// FuzzHear checks that no message of a peer crashes the submitter or removes a process of another
// peer from the view.
func FuzzHear(f *testing.F) {
	for _, m := range []*jobpb.FromPeer{
		{Body: &jobpb.FromPeer_Output{Output: &jobpb.Output{Stream: 1, Data: []byte("line\ntail"), End: true}}},
		{Body: &jobpb.FromPeer_Exited{Exited: &jobpb.Exited{Code: 3, Reason: strings.Repeat("\x1b", 99)}}},
		{Body: &jobpb.FromPeer_Aborted{Aborted: &jobpb.Aborted{Process: &jobpb.Process{Rank: 1 << 31}, Code: -1}}},
		{Body: &jobpb.FromPeer_Collected{Collected: &jobpb.Collected{Manifest: []byte("x")}}},
		{Body: &jobpb.FromPeer_Initialized{}},
		{Body: &jobpb.FromPeer_Paused{Paused: &jobpb.Paused{Rule: "battery", MostNs: 1}}},
		{Body: &jobpb.FromPeer_Stalled{Stalled: &jobpb.Stalled{}}},
		{Body: &jobpb.FromPeer_UpToDate{UpToDate: &jobpb.UpToDate{Since: 1 << 63, Term: 1}}},
		{Body: &jobpb.FromPeer_Account{Account: &jobpb.Account{Summed: true, Sums: []*jobpb.Sum{{Context: 1, Count: 1}}}}},
		{Body: &jobpb.FromPeer_Account{Account: &jobpb.Account{Digested: true, Digest: []byte("short")}}},
		{Body: &jobpb.FromPeer_Diverged{Diverged: &jobpb.Diverged{Receiver: &jobpb.Process{Rank: 1}, Seq: 1, Produced: 1}}},
		{Body: &jobpb.FromPeer_Diverged{Diverged: &jobpb.Diverged{Receiver: &jobpb.Process{Rank: 1, Replica: 7}, Seq: 1}}},
		{},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &jobpb.FromPeer{}
		if proto.Unmarshal(b, m) != nil || m.GetSuspect() != nil { // handled by the detector
			return
		}
		e := newHearing(t)
		for range 2 {
			e.handle(received{link: e.peers.links[0], msg: m})
		}
		e.outputs.tails(e.state.View())
		for _, p := range e.state.View().Processes()[1:] {
			if !e.state.View().Live(p) {
				t.Errorf("%v makes process %v %v", m, p, e.state.View().State(p))
			}
		}
	})
}

// TestWaitingPeersAreKeptAliveWhileOthersStage: peers that wait for the start get a message at
// intervals, as long as other peers report that they stage.
func TestWaitingPeersAreKeptAliveWhileOthersStage(t *testing.T) {
	e := newHearing(t)
	start := e.startup()
	heard := received{link: e.peers.links[1], msg: &jobpb.FromPeer{Body: &jobpb.FromPeer_Staging{Staging: &jobpb.Staging{Bytes: 1, Total: 2}}}}
	said := func() (n int) {
		for range 3 {
			if err := start.handleStaging(heard, &transfer{run: e.j, phase: Staging}); err != nil {
				t.Fatal(err)
			}
			for _, m := range e.peers.links[0].out.take() {
				if m.GetEmitted() == nil {
					t.Errorf("sent %v, want only Emitted", m)
				}
				n++
			}
		}
		return n
	}
	if n := said(); n != 1 {
		t.Errorf("sent %d messages at once, want 1", n)
	}
	start.keptAliveAt = time.Now().Add(-keepAlivePeriod)
	if n := said(); n != 1 {
		t.Errorf("sent %d messages after %v, want 1", n, keepAlivePeriod)
	}
}

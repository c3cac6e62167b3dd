package launch

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/libp2p/go-libp2p/p2p/net/swarm"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/switchboard/entrance"
)

// paths returns the paths that a peer reports, to itself and to the other peer.
func (j *testJob) paths(at int) (here, there *jobpb.Path) {
	j.Helper()
	for _, p := range await(j.links[at], (*jobpb.FromPeer).GetPaths).Paths {
		if string(p.Peer) == string(j.peers[at].ID()) {
			here = p
		} else {
			there = p
		}
	}
	return here, there
}

// failDials makes libp2p believe that dialing another peer has failed.
func failDials(from, to *member) {
	for _, a := range to.Addrs() {
		from.Network().(*swarm.Swarm).Backoff().AddBackoff(to.ID(), a)
	}
}

func TestMessagesTakeTheReportedPath(t *testing.T) {
	cases := map[string]struct {
		channels    []string
		cut         bool // the second peer accepts no direct connections
		failed      bool // the peers have just failed to dial each other
		here, there string
		why         string
	}{
		"all allowed":      {nil, false, false, "shm", "tcp", "on different peers"},
		"no memory":        {[]string{"tcp", "stream"}, false, false, "tcp", "tcp", ""},
		"stream only":      {[]string{"stream"}, false, false, "stream", "stream", "tcp is not allowed"},
		"stream preferred": {[]string{"shm", "stream", "tcp"}, false, false, "shm", "stream", "stream is preferred to tcp"},
		"no way in":        {nil, true, false, "shm", "stream", "no tcp: the connection attempt failed"},
		"dial failed":      {[]string{"stream"}, false, true, "stream", "stream", "tcp is not allowed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := newSpread(t, 3, "ring")
			j.channels, j.explain = c.channels, true
			if c.cut {
				j.peers[1].launch.switchboard.Entrance.Close()
			}
			if c.failed {
				for at, p := range j.peers {
					failDials(p, j.peers[1-at])
				}
			}
			j.startSpread()
			j.awaitInitialized()
			j.begin()
			j.follow(3)
			here, there := j.paths(0)
			if here.GetKind() != c.here || there.GetKind() != c.there || !strings.Contains(there.GetWhy(), c.why) || len(there.GetRelay()) > 0 {
				t.Errorf("got %v and %v, want %s and %s, %s", here, there, c.here, c.there, c.why)
			}
			if here.GetWay() != "" || there.GetWay() != "direct" || there.GetRoundTripUs() == 0 {
				t.Errorf("got %v and %v, want the second to be direct, and how far that is", here, there)
			}
			for rank := range 3 {
				if got := j.links[rank%2].output(view.Process{Rank: rank}, 1); !strings.Contains(got, "<nil>") {
					t.Errorf("rank %d wrote %q", rank, got)
				}
			}
			j.stop()
		})
	}
}

// A wire is a proxy for direct connections to a peer, which can be cut.
type wire struct {
	net.Listener
	to string

	mu      sync.Mutex
	ends    []net.Conn
	cuts    int
	serving sync.WaitGroup
}

// newWire makes peer listen for direct connections behind a wire.
func newWire(t *testing.T, peer *member) *wire {
	t.Helper()
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	back, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: front, to: back.Addr().String()}
	ctx, cancel := context.WithCancel(context.Background())
	before := peer.launch.switchboard.Entrance
	behind := entrance.Serve(ctx, announced{back, front.Addr()}, nil)
	peer.launch.switchboard.Entrance = behind
	w.serving.Go(w.serve)
	t.Cleanup(func() {
		peer.launch.switchboard.Entrance = before
		w.Close()
		w.cut()
		cancel()
		behind.Close()
		w.serving.Wait()
	})
	return w
}

// announced is a listener with an external address that differs from its own.
type announced struct {
	net.Listener
	at net.Addr
}

func (a announced) Addr() net.Addr { return a.at }

func (w *wire) serve() {
	for {
		in, err := w.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", w.to)
		if err != nil {
			in.Close()
			continue
		}
		w.mu.Lock()
		w.ends = append(w.ends, in, out)
		w.mu.Unlock()
		w.serving.Go(func() { io.Copy(in, out); in.Close() })
		w.serving.Go(func() { io.Copy(out, in); out.Close() })
	}
}

// cut breaks the current connections.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.ends {
		c.Close()
	}
	w.cuts += len(w.ends) / 2
	w.ends = nil
}

// counted waits until rank 1 of a job that runs count has reported all messages. It calls also for each
// progress report.
func (j *testJob) counted(also func(said int)) {
	j.Helper()
	p := view.Process{Rank: 1}
	said := 0
	for said < countTo/countSay {
		o := await(j.links[1], (*jobpb.FromPeer).GetOutput)
		if o.Process.View() != p || o.Stream != 1 {
			continue
		}
		for line := range strings.Lines(string(o.Data)) {
			if !strings.HasPrefix(line, "at ") {
				j.Fatalf("rank 1 printed %q", line)
			}
			said++
		}
		j.links[1].say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Emitted{Emitted: &jobpb.Emitted{Rank: 1, Stdout: uint64(said)}}})
		also(said)
	}
}

// endsWell checks that all ranks end with status 0.
func (j *testJob) endsWell(ranks int) {
	j.Helper()
	j.follow(ranks)
	for rank, l := range j.links {
		if e := l.exited(view.Process{Rank: rank}); e.Code != 0 {
			j.Errorf("rank %d: %v", rank, e)
		}
	}
}

// TestReopenedChannelsNeitherLoseNorRepeatMessages reopens channels while they work, and while messages
// are in transit.
func TestReopenedChannelsNeitherLoseNorRepeatMessages(t *testing.T) {
	skip.Long(t)
	for _, kind := range []string{"tcp", "stream"} {
		t.Run(kind, func(t *testing.T) {
			j := newSpread(t, 2, "count")
			j.channels = []string{kind}
			j.startSpread()
			j.awaitInitialized()
			j.begin()
			j.counted(func(int) {
				for i, m := range j.peers {
					m.launch.Renew(j.peers[1-i].ID())
				}
			})
			j.endsWell(2)
			j.stop()
		})
	}
}

// After the first cuts, another direct connection is made. Later none is possible, and the peers bridge the
// channel.
func TestCutConnectionsNeitherLoseNorRepeatMessages(t *testing.T) {
	j := newSpread(t, 2, "count")
	w := newWire(t, j.peers[1])
	j.startSpread()
	j.awaitInitialized()
	j.begin()
	j.counted(func(said int) {
		if said == 6 {
			w.Close()
		}
		w.cut()
	})
	j.endsWell(2)
	if w.cuts < 2 {
		t.Errorf("%d connections were cut, want more", w.cuts)
	}
	j.stop()
}

// TestRequestedBridgeIsReported checks the reported path of a process that could not use TCP,
// although it is allowed.
func TestRequestedBridgeIsReported(t *testing.T) {
	j := newSpread(t, 2, "hang")
	j.explain = true
	j.startSpread()
	j.awaitInitialized()
	j.begin()
	if _, there := j.paths(0); there.GetKind() != "tcp" {
		t.Fatalf("got %v at first, want tcp", there)
	}
	job, ok := j.peers[0].launch.lookup(j.spec.ID)
	if !ok {
		t.Fatal("no job")
	}
	job.do(func() { job.board.Open(view.Process{}, view.Process{Rank: 1}, proclink.Stream) })
	if _, there := j.paths(0); there.GetKind() != "stream" || !strings.Contains(there.GetWhy(), "no tcp: the processes could not agree on keys over it") || strings.Contains(there.GetWhy(), "not allowed") {
		t.Errorf("got %v, want stream and the reason why not tcp", there)
	}
	j.stop()
}

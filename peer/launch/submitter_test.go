package launch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/view"
	peerjob "github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// eventTimeout is how long a test waits for an event that must happen.
const eventTimeout = 20 * time.Second

// A testJob is the submitter's side of a job, as far as the tests need it.
type testJob struct {
	*testing.T
	submitter *member
	spec      *jobspec.Spec
	peers     []*member
	links     []*testLink
	keys      []byte   // public keys of the processes
	channels  []string // allowed kinds
	explain   bool
}

// reserve holds and confirms n slots on a peer.
func (j *testJob) reserve(peer *member, n int) reservation.Key {
	j.Helper()
	client := reservation.NewClient(j.submitter.Host)
	grant, err := client.Hold(j.Context(), peer.ID(), reservation.Request{Job: j.spec.ID, Slots: n})
	if err == nil {
		err = client.Confirm(j.Context(), peer.ID(), grant.Key, n)
	}
	if err != nil {
		j.Fatal(err)
	}
	return grant.Key
}

// prepareMessage requests replica k of every rank.
func (j *testJob) prepareMessage(k int, key reservation.Key) *jobpb.ToPeer {
	j.Helper()
	envelope, err := j.spec.Sign(j.submitter.key)
	if err != nil {
		j.Fatal(err)
	}
	m := &jobpb.Prepare{Spec: envelope, Key: key[:]}
	for rank := range j.spec.N {
		m.Processes = append(m.Processes, &jobpb.Process{Rank: uint32(rank), Replica: uint32(k)})
	}
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Prepare{Prepare: m}}
}

// prepare brings the job to all peers: peer k runs replica k of every rank.
func (j *testJob) prepare() {
	j.Helper()
	for k, peer := range j.peers {
		l := j.connect(peer)
		l.processes = j.spec.N
		l.say(j.prepareMessage(k, j.reserve(peer, j.spec.N)))
		j.links = append(j.links, l)
	}
	for _, l := range j.links {
		if p := await(l, (*jobpb.FromPeer).GetPrepared); p.Error != "" {
			j.Fatalf("not prepared: %s", p.Error)
		}
	}
}

func (j *testJob) startMessage() *jobpb.ToPeer {
	m := &jobpb.Start{View: jobpb.FromView(view.New(j.spec.N, j.spec.R))}
	for k, peer := range j.peers {
		for rank := range j.spec.N {
			row := &jobpb.Member{Process: &jobpb.Process{Rank: uint32(rank), Replica: uint32(k)}, Peer: []byte(peer.ID())}
			for _, a := range peer.Addrs() {
				row.Addrs = append(row.Addrs, a.Bytes())
			}
			m.Members = append(m.Members, row)
		}
	}
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Start{Start: m}}
}

// start prepares the job and starts its processes.
func (j *testJob) start() {
	j.Helper()
	j.prepare()
	j.tell(j.startMessage())
	for _, l := range j.links {
		if s := await(l, (*jobpb.FromPeer).GetStarted); s.Error != "" {
			j.Fatalf("not started: %s", s.Error)
		}
	}
}

func (j *testJob) tell(m *jobpb.ToPeer) {
	for _, l := range j.links {
		l.say(m)
	}
}

func (j *testJob) tellView(v view.View) {
	j.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_View{View: jobpb.FromView(v)}})
}

// stop ends the job on all peers with a Stop, and checks that nothing is left.
func (j *testJob) stop() {
	j.Helper()
	j.tell(&jobpb.ToPeer{Body: &jobpb.ToPeer_Stop{Stop: &jobpb.Stop{Reason: "test"}}})
	for _, l := range j.links {
		await(l, (*jobpb.FromPeer).GetStopped)
		l.awaitEnd()
	}
	j.gone()
}

// gone waits until the peers host no job, and checks that nothing is left (S4).
func (j *testJob) gone() {
	j.Helper()
	for _, peer := range j.peers {
		peer.checkNothingLeft(j.T)
	}
}

// hosted returns a peer's part of the job.
func (j *testJob) hosted(peer int) *job {
	j.Helper()
	here, ok := j.peers[peer].launch.lookup(j.spec.ID)
	if !ok {
		j.Fatalf("peer %d does not have the job", peer)
	}
	return here
}

// answered is query for a job that must not have ended.
func answered[T any](t testing.TB, j *job, ask func() T) T {
	t.Helper()
	answer, ok := query(j, ask)
	if !ok {
		t.Fatal("the job is over")
	}
	return answer
}

// A testLink is the submitter's end of one control stream.
type testLink struct {
	*testing.T
	stream    network.Stream
	processes int                  // number of processes that the peer was asked to run
	heard     chan *jobpb.FromPeer // closed at the end of the stream
	ended     error                // reason for that, valid once heard is closed
	kept      []*jobpb.FromPeer    // messages received while waiting for others
}

func (j *testJob) connect(peer *member) *testLink {
	j.Helper()
	s, err := j.submitter.NewStream(j.Context(), peer.ID(), ControlProtocol)
	if err != nil {
		j.Fatal(err)
	}
	return newTestLink(j.T, s)
}

func newTestLink(t *testing.T, s network.Stream) *testLink {
	l := &testLink{T: t, stream: s, heard: make(chan *jobpb.FromPeer, 1024)}
	t.Cleanup(func() { s.Reset() })
	go func() { // ends with the stream
		defer close(l.heard)
		in := pbio.NewDelimitedReader(s, jobpb.MaxMessage)
		for {
			m := &jobpb.FromPeer{}
			if l.ended = in.ReadMsg(m); l.ended != nil {
				return
			}
			l.heard <- m
		}
	}()
	return l
}

func (l *testLink) say(m *jobpb.ToPeer) {
	l.Helper()
	l.stream.SetWriteDeadline(time.Now().Add(eventTimeout))
	if err := pbio.NewDelimitedWriter(l.stream).WriteMsg(m); err != nil {
		l.Fatal(err)
	}
}

var errEnded = errors.New("control stream ended")

func (l *testLink) next() (*jobpb.FromPeer, error) {
	select {
	case m, ok := <-l.heard:
		if !ok {
			return nil, errEnded
		}
		return m, nil
	case <-time.After(eventTimeout):
		return nil, context.DeadlineExceeded
	}
}

// await returns the next message that get selects; it keeps others for later.
func await[M comparable](l *testLink, get func(*jobpb.FromPeer) M) M {
	l.Helper()
	var none M
	for i, m := range l.kept {
		if b := get(m); b != none {
			l.kept = append(l.kept[:i:i], l.kept[i+1:]...)
			return b
		}
	}
	for {
		m, err := l.next()
		if err != nil {
			l.Fatalf("waiting for %T: %v; received %v", none, err, l.kept)
		}
		if b := get(m); b != none {
			return b
		}
		l.kept = append(l.kept, m)
	}
}

// awaitEnd waits for the end of the stream.
func (l *testLink) awaitEnd() {
	l.Helper()
	for {
		_, err := l.next()
		if errors.Is(err, errEnded) {
			return
		}
		if err != nil {
			l.Fatal("control stream does not end")
		}
	}
}

// output returns a process's complete output on a stream, and acknowledges it.
func (l *testLink) output(p view.Process, stream uint32) string {
	l.Helper()
	return l.outputFrom(p, stream, 0)
}

// recordsIn returns the number of records in o.
func recordsIn(o *jobpb.Output) (n uint64) {
	for data := o.Data; len(data) > 0; n++ {
		data = data[peerjob.RecordLen(data):]
	}
	return n
}

// outputFrom is output starting at record next.
func (l *testLink) outputFrom(p view.Process, stream uint32, next uint64) string {
	l.Helper()
	var text strings.Builder
	for {
		o := await(l, func(m *jobpb.FromPeer) *jobpb.Output {
			if o := m.GetOutput(); o != nil && o.Process.View() == p && o.Stream == stream {
				return o
			}
			return nil
		})
		if o.First != next {
			l.Fatalf("got record %d, want %d", o.First, next)
		}
		text.Write(o.Data)
		next += recordsIn(o)
		if o.End {
			return text.String()
		}
		m := &jobpb.Emitted{Rank: uint32(p.Rank)}
		if stream == 1 {
			m.Stdout = next
		} else {
			m.Stderr = next
		}
		l.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Emitted{Emitted: m}})
	}
}

// exited waits for the exit of a process.
func (l *testLink) exited(p view.Process) *jobpb.Exited {
	l.Helper()
	return await(l, func(m *jobpb.FromPeer) *jobpb.Exited {
		if e := m.GetExited(); e != nil && e.Process.View() == p {
			return e
		}
		return nil
	})
}

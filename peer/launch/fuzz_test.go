package launch

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/recording"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/switchboard"
	"github.com/p2pmpi/p2pmpi/peer/net/dialfilter"
)

// A hosting is a service that hosts parts of jobs without processes.
type hosting struct {
	*Service
	other p2ppeer.ID // the submitter's peer
}

func newHosting(f *testing.F) hosting {
	h, err := libp2p.New(libp2p.NoListenAddrs)
	if err != nil {
		f.Fatal(err)
	}
	detector, views := faultdetect.NewService(h, zerolog.Nop()), viewgroup.NewService(h, zerolog.Nop())
	f.Cleanup(func() { detector.Close(); views.Close(); h.Close() })
	other, err := p2ppeer.Decode("12D3KooWGRUaNZFQNTiMXxRQSCFS1fCkyjYVeQ5fQrJwGvCbhAnx")
	if err != nil {
		f.Fatal(err)
	}
	return hosting{&Service{
		config: Config{Detector: detector, Views: views, Dials: dialfilter.New(), Log: zerolog.Nop()}, host: h, ctx: context.Background(),
		jobs:        make(map[string]*job),
		switchboard: &switchboard.Service{Host: h, Dials: dialfilter.New()},
	}, other}
}

// part returns this peer's part of a running job: process 0.0. Process 1.0 runs on the submitter's peer.
func (h hosting) part(t *testing.T) *job {
	own, others := view.Process{}, view.Process{Rank: 1}
	j := newJob(h.Service, admission{
		spec:      &jobspec.Spec{ID: strings.Repeat("ab", 16), Submitter: h.other, N: 2, R: 1},
		processes: []view.Process{own},
	})
	j.populate()
	members, err := switchboard.NewTable([]*jobpb.Member{
		{Process: jobpb.FromProcess(own), Peer: []byte(h.host.ID())}, {Process: jobpb.FromProcess(others), Peer: []byte(h.other)},
	}, j.place(), j.here.order)
	if err != nil {
		t.Fatal(err)
	}
	j.board.SetTable(members)
	j.state = Running
	j.board.Start([]proclink.Kind{proclink.TCP}, 0)
	j.take(view.New(2, 1))
	return j
}

// over ends everything that a part has started.
func (j *job) over() {
	j.cancel()
	close(j.done)
	j.control.detach()
	if j.detection.group != nil {
		j.detection.group.Close()
	}
	if j.views.group != nil {
		j.views.group.Close()
	}
	j.protected().release(j.submitter, j.board.Table().Addrs)
	j.board.Close()
	j.running.Wait()
	j.board.Wait()
	j.working.Wait()
}

// FuzzOrders checks that a submitter's messages to a running job end at most that job, whatever they
// contain.
func FuzzOrders(f *testing.F) {
	h := newHosting(f)
	v := view.New(2, 1)
	v.Epoch = 9
	own, submitter := []byte(h.host.ID()), []byte(h.other)
	joiner := &jobpb.Member{Process: &jobpb.Process{Replica: 1}, Peer: submitter, Addrs: [][]byte{{4, 127, 0, 0, 1}}}
	join := &jobpb.ToPeer{Body: &jobpb.ToPeer_Join{Join: &jobpb.Join{Group: [][]byte{submitter, own}, Views: []uint32{0, 1}}}}
	for _, ms := range [][]*jobpb.ToPeer{
		{join, join},
		{{Body: &jobpb.ToPeer_Agree{Agree: &jobpb.Agree{First: 2, Peers: [][]byte{submitter, own}, RunsOn: []uint32{1, 0}}}}},
		{{Body: &jobpb.ToPeer_Begin{Begin: &jobpb.Begin{Keys: make([]byte, 2*proclink.KeySize)}}}},
		{{Body: &jobpb.ToPeer_View{View: jobpb.FromView(v)}}},
		{{Body: &jobpb.ToPeer_Joined{Joined: joiner}}},
		{{Body: &jobpb.ToPeer_Emitted{Emitted: &jobpb.Emitted{Stdout: 1 << 63}}}},
		{{Body: &jobpb.ToPeer_Collect{Collect: &jobpb.Collect{Process: &jobpb.Process{}, Patterns: []string{"["}}}}},
		{{}},
	} {
		var b []byte
		for _, m := range ms {
			b = append(b, recording.Of(f, m)...)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		j := h.part(t)
		defer j.over()
		in := pbio.NewDelimitedReader(bytes.NewReader(b), jobpb.MaxMessage)
		for j.ended == nil {
			m := &jobpb.ToPeer{}
			if in.ReadMsg(m) != nil {
				break
			}
			j.handle(m)
		}
		if p := j.board.Table().PeerOf[view.Process{}]; p != h.host.ID() {
			t.Errorf("the process here is now at %s", p)
		}
		if err := j.views.current.Valid(); err != nil || j.views.current.N != 2 {
			t.Errorf("view %+v: %v", j.views.current, err)
		}
	})
}

// FuzzResume checks that only its submitter can resume a job, and only if it claims to have received no
// more messages than were sent.
func FuzzResume(f *testing.F) {
	h := newHosting(f)
	job := strings.Repeat("ab", 16)
	for _, m := range []*jobpb.Resume{
		{Job: job}, {Job: job, Heard: 2}, {Job: job, Heard: 3}, {Job: job, Heard: 1 << 63}, {Job: job, NewProcess: true}, {},
	} {
		f.Add(recording.Of(f, &jobpb.ToPeer{Body: &jobpb.ToPeer_Resume{Resume: m}}))
	}
	join := &jobpb.Join{Group: [][]byte{[]byte(h.other), []byte(h.host.ID())}, Views: []uint32{0, 1}}
	f.Fuzz(func(t *testing.T, b []byte) {
		in := pbio.NewDelimitedReader(bytes.NewReader(b), maxPrepare)
		var first jobpb.ToPeer
		if in.ReadMsg(&first) != nil || first.GetResume() == nil {
			return
		}
		j := h.part(t)
		defer j.over()
		if err := j.join(join); err != nil {
			t.Fatal(err)
		}
		j.settings.init = initReturns
		j.send(staging(1, 2))
		j.send(staging(2, 2))
		h.jobs[j.spec.ID] = j
		h.resume(recording.New("stranger", nil), in, first.GetResume())
		if j.control.stream != nil {
			t.Fatal("the job is a stranger's")
		}
		before := recording.New(h.other, nil)
		j.attach(before, pbio.NewDelimitedReader(before, maxPrepare))
		heard, stream := first.GetResume().Heard, recording.New(h.other, nil)
		err := j.resume(stream, in, first.GetResume())
		if back := j.control.stream.Stream == stream; back != (err == nil) || back && heard > 2 || !back && j.control.stream.Stream != before {
			t.Errorf("resume after %d of 2 messages: reconnected %v, error %v", heard, back, err)
		}
	})
}

package launch

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/pb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// refused checks that the peer answers a first message with a reason that contains want, and ends the
// stream.
func (l *testLink) refused(want string) {
	l.Helper()
	p := await(l, (*jobpb.FromPeer).GetPrepared)
	if !strings.Contains(p.Error, want) {
		l.Errorf("refused with %q, which does not contain %q", p.Error, want)
	}
	l.awaitEnd()
}

func TestO4HostileFirstMessageLeavesNothing(t *testing.T) {
	j := newTestJob(t, 2, 2, nil, "sleep")
	peer := j.peers[0]
	key := j.reserve(peer, 2)
	good := j.prepareMessage(0, key)
	stranger := newTestJob(t, 1, 0, nil, "sleep")
	stranger.spec.R = 1
	cases := map[string]struct {
		change func(*jobpb.Prepare)
		want   string
	}{
		"no job":                  {func(p *jobpb.Prepare) { p.Spec = nil }, "verify job"},
		"changed job":             {func(p *jobpb.Prepare) { p.Spec[len(p.Spec)/2] ^= 1 }, "verify job"},
		"another submitter's job": {func(p *jobpb.Prepare) { p.Spec = stranger.prepareMessage(0, key).GetPrepare().Spec }, "sent by"},
		"wrong key":               {func(p *jobpb.Prepare) { p.Key[0] ^= 1 }, "unknown key"},
		"short key":               {func(p *jobpb.Prepare) { p.Key = p.Key[:3] }, "key of 3 bytes"},
		"no processes":            {func(p *jobpb.Prepare) { p.Processes = nil }, "no processes"},
		"rank out of range":       {func(p *jobpb.Prepare) { p.Processes[0].Rank = 1 << 31 }, "process 2147483648.0"},
		"two of one rank":         {func(p *jobpb.Prepare) { p.Processes[0] = &jobpb.Process{Rank: 1, Replica: 1} }, "two processes of rank 1"},
		"two that join":           {func(p *jobpb.Prepare) { p.Joining = true }, "2 processes join"},
		"join as one of old":      {func(p *jobpb.Prepare) { p.Joining, p.Processes = true, p.Processes[:1] }, "process 0.0 joins"},
		"join as one too many": {func(p *jobpb.Prepare) {
			p.Joining, p.Processes = true, []*jobpb.Process{{Replica: view.MaxReplicas}}
		}, "process 0.64 joins"},
		"same process twice": {func(p *jobpb.Prepare) { p.Processes[0] = p.Processes[1] }, "two processes of rank 1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := proto.Clone(good).(*jobpb.ToPeer)
			c.change(m.GetPrepare())
			l := j.connect(peer)
			l.say(m)
			l.refused(c.want)
			peer.checkNothingLeft(t)
		})
	}
	t.Run("not Prepare", func(t *testing.T) {
		l := j.connect(peer)
		l.say(j.startMessage())
		l.refused("not Prepare")
	})
	for name, b := range map[string][]byte{"too long": {0xff, 0xff, 0xff, 0x7f}, "not a message": {3, 0xff, 0xff, 0xff}} {
		t.Run(name, func(t *testing.T) {
			l := j.connect(peer)
			l.stream.Write(b)
			l.awaitEnd()
		})
	}
	if s := peer.reservations.Snapshot(); s.Confirmed != 2 {
		t.Errorf("the key was spent: %+v", s)
	}
}

func TestS1MoreProcessesThanSlotsAreRefused(t *testing.T) {
	j := newTestJob(t, 2, 1, nil, "sleep")
	l := j.connect(j.peers[0])
	l.say(j.prepareMessage(0, j.reserve(j.peers[0], 1)))
	l.refused("1 slots reserved for 2 processes")
	j.gone()
}

func TestKeyIsRedeemedOnce(t *testing.T) {
	j := newTestJob(t, 1, 1, nil, "sleep")
	key := j.reserve(j.peers[0], 1)
	first := j.connect(j.peers[0])
	first.say(j.prepareMessage(0, key))
	await(first, (*jobpb.FromPeer).GetPrepared)
	j.spec.ID = strings.Repeat("ab", 16)
	second := j.connect(j.peers[0])
	second.say(j.prepareMessage(0, key))
	second.refused("redeem")
	if jobs := j.peers[0].launch.Jobs(); len(jobs) != 1 {
		t.Errorf("the first job was removed too: %v", jobs)
	}
	first.stream.Reset()
	j.gone()
}

func TestMessagesOutOfOrderEndTheJob(t *testing.T) {
	begin := &jobpb.ToPeer{Body: &jobpb.ToPeer_Begin{Begin: &jobpb.Begin{}}}
	join := &jobpb.ToPeer{Body: &jobpb.ToPeer_Join{Join: &jobpb.Join{}}}
	newer := view.New(1, 1)
	newer.Epoch = 9
	cases := map[string]struct {
		started bool
		say     func(j *testJob) *jobpb.ToPeer
	}{
		"Prepare twice": {false, func(j *testJob) *jobpb.ToPeer {
			return &jobpb.ToPeer{Body: &jobpb.ToPeer_Prepare{Prepare: &jobpb.Prepare{}}}
		}},
		"Begin before Start": {false, func(*testJob) *jobpb.ToPeer { return begin }},
		"Join before Start":  {false, func(*testJob) *jobpb.ToPeer { return join }},
		"View before Start": {false, func(*testJob) *jobpb.ToPeer {
			return &jobpb.ToPeer{Body: &jobpb.ToPeer_View{View: jobpb.FromView(newer)}}
		}},
		"nothing at all":       {false, func(*testJob) *jobpb.ToPeer { return &jobpb.ToPeer{} }},
		"Start twice":          {true, (*testJob).startMessage},
		"Join without a group": {true, func(*testJob) *jobpb.ToPeer { return join }},
		"View of another job": {true, func(*testJob) *jobpb.ToPeer {
			return &jobpb.ToPeer{Body: &jobpb.ToPeer_View{View: jobpb.FromView(view.New(2, 3))}}
		}},
		"invalid View": {true, func(*testJob) *jobpb.ToPeer { return &jobpb.ToPeer{Body: &jobpb.ToPeer_View{}} }},
		"Collect from stranger": {true, func(*testJob) *jobpb.ToPeer {
			return &jobpb.ToPeer{Body: &jobpb.ToPeer_Collect{Collect: &jobpb.Collect{Process: &jobpb.Process{Rank: 7}}}}
		}},
	}
	bed := newTestbed(t, 1, 1)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j := bed.newJob(t, 1, 1, nil, "sleep")
			if c.started {
				j.start()
			} else {
				j.prepare()
			}
			j.links[0].say(c.say(j))
			j.links[0].awaitEnd()
			j.gone()
		})
	}
}

func TestStartMustMatchThisPeer(t *testing.T) {
	cases := map[string]func(j *testJob, s *jobpb.Start){
		"own process elsewhere": func(j *testJob, s *jobpb.Start) { s.Members[0].Peer = []byte(j.submitter.ID()) },
		"stranger's here":       func(j *testJob, s *jobpb.Start) { s.Members[1].Peer = s.Members[0].Peer },
		"own process missing":   func(j *testJob, s *jobpb.Start) { s.Members = s.Members[1:] },
		"process twice":         func(j *testJob, s *jobpb.Start) { s.Members[1] = s.Members[0] },
		"not a peer":            func(j *testJob, s *jobpb.Start) { s.Members[0].Peer = []byte("x") },
		"no view":               func(j *testJob, s *jobpb.Start) { s.View = nil },
	}
	bed := newTestbed(t, 2, 1)
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			j := bed.newJob(t, 1, 2, nil, "sleep")
			j.prepare()
			m := j.startMessage()
			change(j, m.GetStart())
			j.links[0].say(m)
			if s := await(j.links[0], (*jobpb.FromPeer).GetStarted); s.Error == "" {
				t.Error("started")
			}
			j.links[0].awaitEnd()
			j.links[1].stream.Reset()
			j.gone()
		})
	}
}

func TestChannelsOfOtherPeersProcessesAreRefused(t *testing.T) {
	j := newTestJob(t, 2, 1, nil, "sleep")
	j.start()
	stranger := newMember(t, 0)
	stranger.meet(j.peers[0])
	process := func(rank uint32) *pb.Process { return &pb.Process{Rank: rank} }
	cases := map[string]*pb.Open{
		"process of another peer": {Job: j.spec.ID, From: process(0), To: process(1)},
		"no such process":         {Job: j.spec.ID, From: process(9), To: process(1)},
		"no such job":             {Job: "x", From: process(0), To: process(1)},
		"nothing":                 {},
	}
	for name, open := range cases {
		s, err := stranger.NewStream(t.Context(), j.peers[0].ID(), ChannelProtocol)
		if err != nil {
			t.Fatal(err)
		}
		s.SetDeadline(time.Now().Add(eventTimeout))
		pbio.NewDelimitedWriter(s).WriteMsg(open)
		var a pb.Answer
		if err := pbio.NewDelimitedReader(s, 1024).ReadMsg(&a); err != nil || a.Error == "" {
			t.Errorf("%s: answered %q, %v", name, a.Error, err)
		}
		s.Reset()
	}
	j.stop()
}

func FuzzCheckPrepare(f *testing.F) {
	b, err := proto.Marshal(&jobpb.ToPeer{Body: &jobpb.ToPeer_Prepare{Prepare: &jobpb.Prepare{
		Key: make([]byte, 16), Processes: []*jobpb.Process{{}, nil},
	}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m jobpb.ToPeer
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		if _, err := checkPrepare(&m, "nobody", "linux", "amd64", nil); err == nil {
			t.Error("an unsigned job was admitted")
		}
	})
}

// TestO4StrangerWithoutAKeyUsesNoMemory requests many processes without a reservation.
func TestO4StrangerWithoutAKeyUsesNoMemory(t *testing.T) {
	j := newTestJob(t, 200, 1, nil, "sleep")
	peer, m := j.peers[0], j.prepareMessage(0, reservation.Key{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := peer.launch.admit(m, j.submitter.ID()); err == nil {
		t.Error("admitted")
	}
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 4<<20 {
		t.Errorf("%d bytes were allocated for a job without a key", taken)
	}
	peer.checkNothingLeft(t)
}

// TestManyIdentitiesDoNotBlockSubmitters makes strangers occupy all places for silent control streams. A
// submitter with slots is admitted nonetheless.
func TestManyIdentitiesDoNotBlockSubmitters(t *testing.T) {
	j := newTestJob(t, 1, 1, nil, "sleep")
	peer := j.peers[0]
	for range maxPending/maxPendingEach + 1 {
		stranger, err := libp2p.New(libp2p.NoListenAddrs, libp2p.DisableRelay())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stranger.Close() })
		stranger.Peerstore().AddAddrs(peer.ID(), peer.Addrs(), time.Hour)
		for range maxPendingEach {
			s, err := stranger.NewStream(t.Context(), peer.ID(), ControlProtocol)
			if err != nil {
				t.Fatal(err)
			}
			s.Write([]byte{100})
		}
	}
	for end := time.Now().Add(eventTimeout); ; <-time.After(time.Millisecond) {
		give, err := peer.launch.pending.Take("another")
		if err != nil {
			break
		}
		if give(); time.Now().After(end) {
			t.Fatal("there are places")
		}
	}
	key := j.reserve(peer, 1)
	l := j.connect(peer)
	l.say(j.prepareMessage(0, key))
	if p := await(l, (*jobpb.FromPeer).GetPrepared); p.Error != "" {
		t.Errorf("refused: %s", p.Error)
	}
	l.stream.Reset()
	j.gone()
}

// TestJobIDOfAnotherSubmitterIsRefused checks that a stranger cannot bring its own job under the ID of
// another, even with a reservation. The job continues.
func TestJobIDOfAnotherSubmitterIsRefused(t *testing.T) {
	bed := newTestbed(t, 1, 2)
	j := bed.newJob(t, 1, 1, nil, "sleep")
	j.start()
	thief := newMember(t, 0)
	thief.meet(bed.peers[0])
	bed.peers[0].meet(thief)
	stolen := (&testbed{submitter: thief, peers: bed.peers, program: bed.program}).newJob(t, 1, 1, nil, "sleep")
	key := stolen.reserve(bed.peers[0], 1)
	stolen.spec.ID = j.spec.ID
	l := stolen.connect(bed.peers[0])
	l.say(stolen.prepareMessage(0, key))
	l.refused("of another submitter")
	if jobs := bed.peers[0].launch.Jobs(); len(jobs) != 1 || jobs[0].Submitter != j.submitter.ID() {
		t.Errorf("the peer has jobs %+v", jobs)
	}
	j.stop()
}

// TestT3ManifestWithEscapingPathsEndsTheJob checks that a manifest with such paths ends the job,
// although the submitter has signed it and everything else is in order.
func TestT3ManifestWithEscapingPathsEndsTheJob(t *testing.T) {
	const honest = "inputs/of/thejob"
	bed := newTestbed(t, 1, 1)
	for _, evil := range []string{"../../etc/passwd", "/etc/cron.daily/", "a/../../escaped.", "../../identity/."} {
		j := bed.newJob(t, 1, 1, map[string]string{honest: "evil"}, "sleep")
		store := j.submitter.files.Store()
		digest, err := filetransfer.ParseDigest(j.spec.Inputs)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := os.ReadFile(store.Path(digest))
		if err != nil {
			t.Fatal(err)
		}
		forged := bytes.Replace(manifest, []byte(honest), []byte(evil), 1)
		if len(forged) != len(manifest) || bytes.Equal(forged, manifest) {
			t.Fatalf("%q was not put into the manifest", evil)
		}
		if digest, err = store.Put(t.Context(), j.spec.ID, forged); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(j.submitter.files.Serve(j.spec.ID, []p2ppeer.ID{bed.peers[0].ID()}, map[filetransfer.Digest]filetransfer.Source{digest: {From: store.Path(digest)}}))
		j.spec.Inputs = digest.String()
		l := j.connect(bed.peers[0])
		l.say(j.prepareMessage(0, j.reserve(bed.peers[0], 1)))
		l.refused("path")
		j.gone()
	}
}

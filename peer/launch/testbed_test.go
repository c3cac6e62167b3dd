package launch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A member is a host with all services: a peer, or a submitter that uses only some of them.
type member struct {
	host.Host
	home         string
	reservations *reservation.Service
	files        *filetransfer.Service
	detector     *faultdetect.Service
	views        *viewgroup.Service
	launch       *Service
	key          crypto.PrivKey
}

// lowWater is the number of unprotected connections that a host keeps when it trims them, which here
// happens only on request.
const lowWater = 2

func newMember(t *testing.T, slots int) *member {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{home: t.TempDir(), key: key}
	conns, err := connmgr.NewConnManager(lowWater, lowWater, connmgr.WithGracePeriod(0), connmgr.WithSilencePeriod(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	m.Host, err = libp2p.New(libp2p.Identity(key), libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay(), libp2p.ConnectionManager(conns),
		libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport())) // members that act as a submitter dial once, see internal/redial
	if err != nil {
		t.Fatal(err)
	}
	log := zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel)
	store, err := filetransfer.OpenStore(filepath.Join(m.home, "cache"), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	m.reservations = reservation.NewService(m.Host, reservation.Config{Limits: reservation.Limits{Slots: slots}, Log: log})
	m.files = filetransfer.NewService(m.Host, store, log)
	m.detector = faultdetect.NewService(m.Host, log)
	m.views = viewgroup.NewService(m.Host, log)
	m.launch, err = NewService(m.Host, Config{
		Home: m.home, Reservations: m.reservations, Files: m.files, Detector: m.detector, Views: m.views, Log: log,
		DataListen: "127.0.0.1:0", Sandbox: ExamineSandbox(m.home), Readable: []string{os.Args[0]},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.close)
	return m
}

func (m *member) close() {
	m.launch.Close()
	m.views.Close()
	m.detector.Close()
	m.files.Close()
	m.reservations.Close()
	m.Close()
}

// meet stores b's addresses at m.
func (m *member) meet(b *member) { m.Peerstore().AddAddrs(b.ID(), b.Addrs(), time.Hour) }

// A testbed is a submitter and some peers that know each other.
type testbed struct {
	submitter *member
	peers     []*member
	program   string // program of its jobs
}

func newTestbed(t *testing.T, peers, slots int) *testbed {
	t.Helper()
	b := &testbed{submitter: newMember(t, 0), program: script(t)}
	for range peers {
		peer := newMember(t, slots)
		b.peers = append(b.peers, peer)
		b.submitter.meet(peer)
		peer.meet(b.submitter)
	}
	return b
}

// newTestJob describes a job on r new peers.
func newTestJob(t *testing.T, n, r int, inputs map[string]string, args ...string) *testJob {
	t.Helper()
	return newTestbed(t, r, n).newJob(t, n, r, inputs, args...)
}

// newJob describes a job of the test program, with input files of the given contents, and offers its files.
func (b *testbed) newJob(t *testing.T, n, r int, inputs map[string]string, args ...string) *testJob {
	t.Helper()
	j := &testJob{T: t, submitter: b.submitter, peers: b.peers[:r]}
	id := make([]byte, 16)
	rand.Read(id)
	j.spec = &jobspec.Spec{
		ID: hex.EncodeToString(id), Submitter: j.submitter.ID(), Protocol: version.Protocol,
		N: n, R: r, Name: "prog", Args: args,
	}
	program := filetransfer.Source{Path: "prog", From: b.program}
	var sources []filetransfer.Source
	for path, text := range inputs {
		from := filepath.Join(t.TempDir(), "input")
		if err := os.WriteFile(from, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		sources = append(sources, filetransfer.Source{Path: path, From: from})
	}
	files := make(map[filetransfer.Digest]filetransfer.Source)
	build := func(s ...filetransfer.Source) filetransfer.Manifest {
		m, err := filetransfer.Build(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(files, filetransfer.Locate(m, s))
		return m
	}
	p := build(program)[0]
	j.spec.Programs = []jobspec.Program{{OS: runtime.GOOS, Arch: runtime.GOARCH, Digest: p.Digest.String(), Size: p.Size, Pieces: p.Pieces}}
	encoded, err := build(sources...).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	store := j.submitter.files.Store()
	digest, err := store.Put(t.Context(), j.spec.ID, encoded)
	if err != nil {
		t.Fatal(err)
	}
	files[digest] = filetransfer.Source{From: store.Path(digest)}
	j.spec.Inputs, j.spec.InputsLen = digest.String(), int64(len(encoded))
	var ids []p2ppeer.ID
	for _, peer := range b.peers {
		ids = append(ids, peer.ID())
	}
	t.Cleanup(j.submitter.files.Serve(j.spec.ID, ids, files))
	return j
}

// checkNothingLeft waits until m hosts no job, and checks that nothing of one is left (S4).
func (m *member) checkNothingLeft(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	if err := m.launch.waitIdle(ctx); err != nil {
		t.Fatalf("jobs left: %+v", m.launch.Jobs())
	}
	if left := processesBelow(m.home); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
	if left, _ := os.ReadDir(filepath.Join(m.home, "scratch")); len(left) > 0 {
		t.Errorf("scratch folders are left: %v", left)
	}
	if s := m.reservations.Snapshot(); s.Running != 0 {
		t.Errorf("slots are still in use: %+v", s)
	}
}

// waitIdle returns when this peer hosts no job.
func (s *Service) waitIdle(ctx context.Context) error {
	for {
		s.mu.Lock()
		idle, gone := len(s.jobs) == 0, s.gone
		s.mu.Unlock()
		if idle {
			return nil
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

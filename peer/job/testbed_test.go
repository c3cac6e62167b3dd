package job

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/loopback"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// patience is how long a test waits for an event that must come.
const patience = 20 * time.Second

// never is a gossip period in which no test sees a heartbeat: nobody is failed
// for silence.
const never = time.Hour

// A member is one host with all services that a job needs; but for the launcher,
// which is played where a test wants to say when what happens.
type member struct {
	*loopback.Host
	key       crypto.PrivKey
	home      string
	slots     *reservation.Service
	files     *filetransfer.Service
	detector  *faultdetect.Service
	discovery *discovery.Service
	launcher  *launch.Service // nil where it is played
	close     func()
}

func newMember(t *testing.T, slots int) *member {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	h, err := libp2p.New(libp2p.Identity(key), libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay())
	if err != nil {
		t.Fatal(err)
	}
	m := &member{Host: loopback.Wrap(h), key: key, home: t.TempDir()}
	log := zerolog.Nop()
	store, err := filetransfer.OpenStore(filepath.Join(m.home, "cache"), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	m.slots = reservation.NewService(m.Host, reservation.Config{Limits: reservation.Limits{Slots: slots}, Log: log})
	m.files = filetransfer.NewService(m.Host, store, log)
	m.detector = faultdetect.NewService(m.Host, log)
	cfg := discovery.DefaultConfig()
	cfg.Network, cfg.MDNS, cfg.DHTServer, cfg.Grace = "test", false, false, 10*time.Millisecond
	if slots > 0 {
		cfg.Offer = func() discovery.Offer {
			s := m.slots.Snapshot()
			return discovery.Offer{SlotsTotal: s.Total, SlotsFree: s.Free, Kinds: []string{"native"}}
		}
	}
	if m.discovery, err = discovery.New(context.Background(), m.Host, cfg); err != nil {
		t.Fatal(err)
	}
	m.close = sync.OnceFunc(func() {
		m.discovery.Close()
		if m.launcher != nil {
			m.launcher.Close()
		}
		m.detector.Close()
		m.files.Close()
		m.slots.Close()
		m.Close()
	})
	t.Cleanup(m.close)
	return m
}

// launches makes m really launch processes.
func (m *member) launches(t *testing.T) {
	t.Helper()
	var err error
	m.launcher, err = launch.NewService(m.Host, launch.Config{
		Home: m.home, Reservations: m.slots, Files: m.files, Detector: m.detector, Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A bed is a submitter and the peers that it knows.
type bed struct {
	*testing.T
	own       *member // the submitter's
	submitter *Submitter
	peers     []*member
	stage     stage // where the peers are played
}

// newBed returns a bed of peers with so many slots each. The submitter's own
// peer has none.
func newBed(t *testing.T, period time.Duration, slots ...int) *bed {
	t.Helper()
	b := &bed{T: t, own: newMember(t, 0)}
	b.serve(period)
	for _, n := range slots {
		b.peers = append(b.peers, newMember(t, n))
	}
	b.meet()
	return b
}

// serve makes b.own the submitter.
func (b *bed) serve(period time.Duration) {
	b.submitter = NewSubmitter(Config{
		Host: b.own.Host, Key: b.own.key, Discovery: b.own.discovery, Files: b.own.files,
		Detector: b.own.detector, Period: period, Log: zerolog.Nop(),
	})
	b.submitter.waits.grace = 50 * time.Millisecond
}

// in makes t the test that b is used in.
func (b *bed) in(t *testing.T) *bed {
	b.T = t
	return b
}

// meet connects everybody to everybody. Who dials knows afterwards what the other
// speaks, so the submitter dials.
func (b *bed) meet() {
	b.Helper()
	all := append([]*member{b.own}, b.peers...)
	for i, m := range all {
		for _, o := range all[:i] {
			if err := o.Connect(b.Context(), p2ppeer.AddrInfo{ID: m.ID(), Addrs: m.Addrs()}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// launching makes all peers of b really launch processes.
func (b *bed) launching() *bed {
	b.Helper()
	for _, m := range b.peers {
		m.launches(b.T)
	}
	return b
}

func (b *bed) peer(id string) *member {
	for _, m := range b.peers {
		if m.ID().String() == id {
			return m
		}
	}
	b.Fatalf("no peer %s", id)
	return nil
}

// request is a job of a program that no played peer looks at.
func (b *bed) request(n, r int) Request {
	return Request{
		Programs: []Executable{{Platform: Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}, Path: "/bin/true"}},
		Name:     "prog", N: n, R: r, Strategy: "spread", Wait: patience,
	}
}

// An outcome is what a user gets to see of a job.
type outcome struct {
	Result
	bed    *bed
	events []Event
}

// run runs a job to its end. watch, if not nil, is told of every event.
func (b *bed) run(req Request, watch func(Event) error) *outcome {
	b.Helper()
	return b.runUntil(b.Context(), req, watch)
}

func (b *bed) runUntil(ctx context.Context, req Request, watch func(Event) error) *outcome {
	b.Helper()
	o := &outcome{bed: b}
	ended := make(chan struct{})
	go func() { // ends with the job
		defer close(ended)
		o.Result = b.submitter.Run(ctx, req, func(e Event) error {
			o.events = append(o.events, e)
			if watch != nil {
				return watch(e)
			}
			return nil
		})
	}()
	select {
	case <-ended:
	case <-time.After(2 * patience):
		stacks := make([]byte, 1<<20)
		b.Fatalf("the job does not end:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
	return o
}

// want compares the job's end with what is expected, and checks that nothing is
// left of it on any peer (S4).
func (o *outcome) want(status int, says string) {
	o.bed.Helper()
	if o.Status != status || !strings.Contains(o.Message, says) {
		o.bed.Errorf("ended with %d %q, want %d and %q; said: %q", o.Status, o.Message, status, says, o.texts())
	}
	o.bed.nothingLeft()
}

// wrote compares what the user got of one stream of a rank.
func (o *outcome) wrote(rank int, s Stream, want string) {
	o.bed.Helper()
	var got strings.Builder
	for _, e := range o.events {
		if e.Kind == OutputEvent && e.Rank == rank && e.Stream == s {
			got.Write(e.Data)
		}
	}
	if got.String() != want {
		o.bed.Errorf("stream %d of rank %d is %q, want %q", s, rank, got.String(), want)
	}
}

// texts returns the sentences that the user was told.
func (o *outcome) texts() string {
	var texts []string
	for _, e := range o.events {
		if e.Text != "" {
			texts = append(texts, e.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func (o *outcome) told(says string) {
	o.bed.Helper()
	if got := o.texts(); !strings.Contains(got, says) {
		o.bed.Errorf("the user was told %q, want %q", got, says)
	}
}

// phases returns the phases that the job went through.
func (o *outcome) phases() string {
	var ps []string
	for _, e := range o.events {
		if e.Kind == PhaseEvent && (len(ps) == 0 || ps[len(ps)-1] != string(e.Phase)) {
			ps = append(ps, string(e.Phase))
		}
	}
	return strings.Join(ps, " ")
}

// view returns the last view of the job.
func (o *outcome) view() view.View {
	for i := len(o.events) - 1; i >= 0; i-- {
		if v := o.events[i].View; v != nil {
			return *v
		}
	}
	return view.View{}
}

// nothingLeft waits until all slots are free again.
func (b *bed) nothingLeft() {
	b.Helper()
	if jobs := b.submitter.Jobs(); len(jobs) > 0 {
		b.Errorf("the submitter still has %+v", jobs)
	}
	timeout := time.After(patience)
	for i, m := range append([]*member{b.own}, b.peers...) {
		for s := m.slots.Snapshot(); s.Free != s.Total; s = m.slots.Snapshot() {
			select {
			case <-m.slots.Changed():
			case <-timeout:
				b.Fatalf("peer %d: slots are not given back: %+v", i, s)
			}
		}
	}
}

// input writes a file to be staged.
func (b *bed) input(path, text string) filetransfer.Source {
	b.Helper()
	from := filepath.Join(b.TempDir(), "input")
	b.write(from, text)
	return filetransfer.Source{Path: path, From: from}
}

func (b *bed) write(path, text string) {
	b.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// folder returns the files of a folder and their contents.
func folder(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all = append(all, fmt.Sprintf("%s=%s", name, text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

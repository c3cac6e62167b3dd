package submit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
)

// eventTimeout is how long a test waits for an event that must come.
const eventTimeout = 20 * time.Second

// never is a gossip period in which no test sees a heartbeat, so no peer is failed for silence.
const never = time.Hour

func proc(rank, replica int) view.Process { return view.Process{Rank: rank, Replica: replica} }

var (
	wellEnded = job.Exit{Initialized: true, Finalized: true}
	killed    = job.Exit{Code: -1, Signal: "killed", Initialized: true}
)

// running returns the state of a job in which every process has left mpj.Init.
func running(n, r int) *job.State {
	s := job.NewState(n, r)
	for _, p := range s.View().Processes() {
		s.Apply(job.Initialized{Process: p})
	}
	return s
}

// newHealing returns the healing of a job of n ranks that pauses for a second after a failed attempt.
func newHealing(n int) *job.Healing {
	return job.NewHealing(n, func(int) time.Duration { return time.Second })
}

// lose lets s agree on the failure of p.
func lose(s *job.State, p view.Process) {
	for _, c := range s.Apply(job.Lost{Processes: []view.Process{p}, Why: "is lost"}).Propose {
		s.Apply(job.Committed{Change: c})
	}
}

// A bed is a submitter and the peers that it knows.
type bed struct {
	*testing.T
	own       *member // the submitter's peer
	submitter *Submitter
	peers     []*member
	stage     stage // runs the played peers
	agreement *agreement
}

// newBed returns a bed of peers with the given numbers of slots. The submitter's own peer has none.
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
		Detector: b.own.detector, Views: b.own.views, Period: period, Log: zerolog.Nop(),
	})
	b.submitter.waits.grace = 50 * time.Millisecond
	b.submitter.waits.files = eventTimeout
	b.submitter.waits.replaceAfter = eventTimeout
	b.submitter.waits.wide = eventTimeout
}

// in makes t the current test of b.
func (b *bed) in(t *testing.T) *bed {
	b.T = t
	return b
}

// meet connects the submitter to the peers until it knows their protocols, and so which of them offer slots. A peer
// that has just started may not tell all of them on the first connection.
func (b *bed) meet() {
	b.Helper()
	for _, m := range b.peers {
		for begun := time.Now(); ; {
			if err := b.own.Connect(b.Context(), p2ppeer.AddrInfo{ID: m.ID(), Addrs: m.Addrs()}); err != nil {
				b.Fatal(err)
			}
			all := m.Mux().Protocols()
			known, err := b.own.Peerstore().SupportsProtocols(m.ID(), all...)
			if len(known) == len(all) {
				break
			}
			if err = errors.Join(err, b.own.Network().ClosePeer(m.ID())); err != nil || time.Since(begun) > eventTimeout {
				b.Fatalf("%s tells %d of its %d protocols: %v", m.ID(), len(known), len(all), err)
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

// request returns a job whose program no played peer looks at.
func (b *bed) request(n, r int) Request {
	return Request{
		Programs: []Executable{{Platform: Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}, Path: "/bin/true"}},
		Name:     "prog", N: n, R: r, Strategy: "spread", Wait: eventTimeout,
	}
}

// nothingLeft waits until all slots are free again.
func (b *bed) nothingLeft() {
	b.Helper()
	if jobs := b.submitter.Jobs(); len(jobs) > 0 {
		b.Errorf("the submitter still has %+v", jobs)
	}
	timeout := time.After(eventTimeout)
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

// input returns a file to be staged.
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

// folder lists the files of a directory with their contents.
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

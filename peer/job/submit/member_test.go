package submit

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/loopback"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A member is one host with all services that a job needs, except the launcher: a test that
// controls the order of events plays its part.
type member struct {
	*loopback.Host
	key       crypto.PrivKey
	home      string
	slots     *reservation.Service
	files     *filetransfer.Service
	detector  *faultdetect.Service
	views     *viewgroup.Service
	discovery *discovery.Service
	launcher  *launch.Service // nil if it is played
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
	m.views = viewgroup.NewService(m.Host, log)
	m.discovers(t, slots > 0, false)
	m.close = sync.OnceFunc(func() {
		m.discovery.Close()
		if m.launcher != nil {
			m.launcher.Close()
		}
		m.views.Close()
		m.detector.Close()
		m.files.Close()
		m.slots.Close()
		m.Close()
	})
	t.Cleanup(m.close)
	return m
}

// standsOn sets the machine that m names with its slots.
func (m *member) standsOn(machine string, slots int) {
	m.slots.Close()
	m.slots = reservation.NewService(m.Host, reservation.Config{Limits: reservation.Limits{Slots: slots}, Log: zerolog.Nop(), Machine: machine})
}

// discovers makes m find others, and be found if offers is set. If introduces is set, others find
// each other through m.
func (m *member) discovers(t *testing.T, offers, introduces bool) {
	t.Helper()
	cfg := discovery.DefaultConfig()
	cfg.Network, cfg.MDNS, cfg.DHTServer, cfg.Grace = "test", false, introduces, 10*time.Millisecond
	if offers {
		cfg.Offer = func() discovery.Offer {
			s := m.slots.Snapshot()
			return discovery.Offer{SlotsTotal: s.Total, SlotsFree: s.Free, Kinds: []string{"native"}}
		}
	}
	var err error
	if m.discovery, err = discovery.New(context.Background(), m.Host, cfg); err != nil {
		t.Fatal(err)
	}
}

// introduces makes others find each other through m, which offers slots.
func (m *member) introduces(t *testing.T) {
	t.Helper()
	m.discovery.Close()
	m.discovers(t, true, true)
}

// launches makes m really launch processes.
func (m *member) launches(t *testing.T) {
	t.Helper()
	var err error
	m.launcher, err = launch.NewService(m.Host, launch.Config{
		Home: m.home, Reservations: m.slots, Files: m.files, Detector: m.detector, Views: m.views, Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
}

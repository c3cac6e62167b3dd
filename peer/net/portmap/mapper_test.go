package portmap

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fake is a simulated router whose mappings expire.
type fake struct {
	mu    sync.Mutex
	at    netip.Addr
	taken map[uint16]bool // ports in use by other machines
	until map[uint16]time.Time
	dead  bool
	slow  time.Duration // delay of an answer
	mute  bool          // does not answer requests for mappings
}

// now changes the state of the router.
func (f *fake) now(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// wait waits for the delay of an answer.
func (f *fake) wait(ctx context.Context) error {
	var slow time.Duration
	f.now(func() { slow = f.slow })
	select {
	case <-time.After(slow):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errDead = errors.New("no answer")

func (f *fake) how() string { return "fake" }

func (f *fake) address(ctx context.Context) (netip.Addr, error) {
	if err := f.wait(ctx); err != nil {
		return netip.Addr{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return netip.Addr{}, errDead
	}
	return f.at, nil
}

func (f *fake) addMapping(ctx context.Context, _ Port, outside uint16, lasts time.Duration) (uint16, error) {
	f.mu.Lock()
	mute := f.mute
	taken := f.taken[outside]
	if !mute && !taken {
		f.until[outside] = time.Now().Add(lasts)
	}
	f.mu.Unlock()
	if mute {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	if err := f.wait(ctx); err != nil {
		return 0, err
	}
	if taken {
		return 0, errors.New("taken")
	}
	return outside, nil
}

func (f *fake) removeMapping(ctx context.Context, _ Port, outside uint16) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.until, outside)
	return nil
}

// maps reports whether a port of the router is mapped.
func (f *fake) maps(outside uint16) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().Before(f.until[outside])
}

var here = Port{"tcp", 4001}

// with runs a Mapper and a router in virtual time.
func with(t *testing.T, do func(m *Mapper, f *fake)) {
	virtualtime.Test(t, func(t *testing.T) {
		f := &fake{at: netip.MustParseAddr("11.0.1.1"), until: make(map[uint16]time.Time), taken: make(map[uint16]bool)}
		m := start(func(context.Context) (router, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.dead {
				return nil, errDead
			}
			return f, nil
		}, zerolog.Nop())
		defer m.Close()
		synctest.Wait()
		do(m, f)
	})
}

// settle waits for d, and then until all other goroutines are blocked.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func expectMapped(t *testing.T, m *Mapper, want string) {
	t.Helper()
	at, ok := m.Mapped(here) // the first call requests the mapping
	if got := at.String(); ok != (want != "") || ok && got != want {
		t.Errorf("the port is mapped: %v at %s, want %q", ok, got, want)
	}
}

func TestPortIsMappedUntilReleased(t *testing.T) {
	with(t, func(m *Mapper, f *fake) {
		expectMapped(t, m, "")
		settle(0)
		expectMapped(t, m, "11.0.1.1:4001")
		settle(24 * time.Hour)
		if !f.maps(4001) {
			t.Error("the mapping was not renewed")
		}
		if m.Close(); f.maps(4001) {
			t.Error("the mapping was not removed")
		}
		expectMapped(t, m, "")
	})
}

func TestPortInUseIsMappedElsewhere(t *testing.T) {
	with(t, func(m *Mapper, f *fake) {
		f.now(func() { f.taken[4001] = true })
		m.Mapped(here)
		settle(0)
		at, ok := m.Mapped(here)
		if !ok || at.Port() == 4001 || !f.maps(at.Port()) {
			t.Fatalf("the port is mapped: %v at %s, want another port", ok, at)
		}
		settle(time.Hour)
		expectMapped(t, m, at.String()) // the external port stays the same
	})
}

func TestRouterDiscoveryIsRepeated(t *testing.T) {
	with(t, func(m *Mapper, f *fake) {
		m.Mapped(here)
		settle(0)
		f.now(func() { f.dead = true })
		settle(renewPeriod)
		expectMapped(t, m, "")
		if m.Router() != (Router{}) {
			t.Errorf("got router %v", m.Router())
		}
		f.now(func() { f.dead, f.at = false, netip.MustParseAddr("11.0.1.2") })
		settle(findPeriod)
		expectMapped(t, m, "11.0.1.2:4001")
	})
}

func TestPortsAreBounded(t *testing.T) {
	with(t, func(m *Mapper, f *fake) {
		for n := range uint16(2 * maxPorts) {
			m.Mapped(Port{"udp", 1 + n})
		}
		settle(0)
		if len(f.until) != maxPorts {
			t.Errorf("%d ports are mapped, want %d", len(f.until), maxPorts)
		}
	})
}

func TestOfflineRouterMapsNothing(t *testing.T) {
	for _, no := range []string{"0.0.0.0", "127.0.0.1", "255.255.255.255", "169.254.1.1", "2001:db8::1"} {
		with(t, func(m *Mapper, f *fake) {
			m.Mapped(here)
			settle(0)
			expectMapped(t, m, "11.0.1.1:4001")
			f.now(func() { f.at = netip.MustParseAddr(no) })
			settle(renewPeriod)
			expectMapped(t, m, "")
			if m.Router() != (Router{}) {
				t.Errorf("external address %s: got router %v", no, m.Router())
			}
			f.now(func() { f.at = netip.MustParseAddr("192.168.7.1") }) // behind another router
			settle(findPeriod)
			expectMapped(t, m, "192.168.7.1:4001")
		})
	}
}

func TestCloseDuringARenewalRemovesTheMapping(t *testing.T) {
	for name, into := range map[string]time.Duration{"address": time.Second, "first port": 3 * time.Second} {
		for name2, before := range map[string]time.Duration{"first": 0, "later": renewPeriod} {
			t.Run(name2+" "+name, func(t *testing.T) {
				with(t, func(m *Mapper, f *fake) {
					if before == 0 {
						f.now(func() { f.slow = 2 * time.Second })
					}
					m.Mapped(here)
					settle(0)
					f.now(func() { f.slow = 2 * time.Second })
					settle(before + into)
					if m.Close(); f.maps(4001) {
						t.Error("the mapping was not removed")
					}
					expectMapped(t, m, "")
				})
			})
		}
	}
}

func TestMissingAnswerKeepsTheMapping(t *testing.T) {
	with(t, func(m *Mapper, f *fake) {
		f.now(func() { f.taken[4001] = true })
		m.Mapped(here)
		settle(0)
		at, _ := m.Mapped(here)
		f.now(func() { f.mute = true })
		settle(renewPeriod + 2*answerTimeout)
		expectMapped(t, m, at.String())
		settle(lifetime)
		expectMapped(t, m, "") // the mapping has expired
		f.now(func() { f.mute = false })
		settle(renewPeriod + answerTimeout)
		expectMapped(t, m, at.String()) // the Mapper has requested the same external port
		f.now(func() { f.mute = true })
		settle(renewPeriod)
		if m.Close(); f.maps(at.Port()) {
			t.Error("the mapping was not removed")
		}
	})
}

func TestNilMapperMapsNothing(t *testing.T) {
	var m *Mapper
	expectMapped(t, m, "")
	if m.Router().How != "" {
		t.Errorf("got router %v", m.Router())
	}
}

func TestAnnouncedAddresses(t *testing.T) {
	tests := map[string]string{ // by listening address
		"/ip4/0.0.0.0/tcp/4001":             "/ip4/11.0.1.1/tcp/4001",
		"/ip4/192.168.1.2/udp/4002/quic-v1": "/ip4/11.0.1.1/udp/4002/quic-v1",
		"/ip4/127.0.0.1/tcp/4003":           "",
		"/ip6/::/tcp/4004":                  "",
		"/p2p-circuit":                      "",
		"/dns4/example.org/tcp/1":           "",
	}
	with(t, func(m *Mapper, f *fake) {
		for listen := range tests {
			announcer{m}.GetMapping(ma.StringCast(listen)) // requests the mapping
		}
		settle(0)
		for listen, want := range tests {
			got := announcer{m}.GetMapping(ma.StringCast(listen))
			if want == "" && got != nil || want != "" && (got == nil || got.String() != want) {
				t.Errorf("%s: got %v, want %q", listen, got, want)
			}
		}
		if len(f.until) != 2 {
			t.Errorf("%d ports are mapped, want 2", len(f.until))
		}
	})
}

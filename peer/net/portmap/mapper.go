package portmap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/background"
)

const (
	findTimeout   = 10 * time.Second
	findPeriod    = time.Minute // between searches
	answerTimeout = 5 * time.Second
	lifetime      = 2 * time.Minute // lifetime of a mapping
	renewPeriod   = lifetime / 3
	maxPorts      = 32 // number of mapped ports of this machine
)

// A Port identifies a port of this machine by its protocol and number.
type Port struct {
	Protocol string // tcp or udp
	Number   uint16
}

// A Router describes a router that maps ports. The zero value means that there is no such router.
type Router struct {
	How     string     `json:"how,omitempty"` // NAT-PMP or UPnP
	Address netip.Addr `json:"address"`       // external address of the router
}

// A router maps its own external ports to ports of this machine.
type router interface {
	how() string
	address(ctx context.Context) (netip.Addr, error)
	// addMapping maps an external port to a local port and returns the external port. The router may choose
	// another one than outside.
	addMapping(ctx context.Context, p Port, outside uint16, lasts time.Duration) (uint16, error)
	// removeMapping removes the mapping of an external port to a local port.
	removeMapping(ctx context.Context, p Port, outside uint16) error
}

// A mapping is the router's last answer for a port.
type mapping struct {
	outside uint16    // last external port, or 0 before the first mapping
	until   time.Time // expiry of the mapping
}

func (m mapping) lasts() bool { return time.Now().Before(m.until) }

// A Mapper keeps ports of this machine mapped. A nil Mapper maps no ports. Its methods are safe for concurrent
// use.
type Mapper struct {
	log  zerolog.Logger
	find func(context.Context) (router, error)
	news chan struct{} // signals a new wanted port; has room for one token

	mu    sync.Mutex
	found Router
	ports map[Port]mapping // wanted ports

	work *background.Work
}

// New starts a Mapper, which searches for a router.
func New(log zerolog.Logger) *Mapper { return start(find, log) }

func start(find func(context.Context) (router, error), log zerolog.Logger) *Mapper {
	m := &Mapper{
		log: log, find: find, news: make(chan struct{}, 1), ports: make(map[Port]mapping), work: background.New(context.Background()),
	}
	m.work.Go(m.run)
	return m
}

// Mapped returns the external address of a port of this machine. The first call for a port requests the
// mapping. Mapped returns false until a router has mapped the port.
func (m *Mapper) Mapped(p Port) (netip.AddrPort, bool) {
	if m == nil {
		return netip.AddrPort{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known, wanted := m.ports[p]
	if !wanted && len(m.ports) < maxPorts {
		m.ports[p] = mapping{}
		background.Notify(m.news)
	}
	return netip.AddrPortFrom(m.found.Address, known.outside), m.found.Address.IsValid() && known.lasts()
}

// MappedTCP is like Mapped for a TCP port.
func (m *Mapper) MappedTCP(port uint16) (netip.AddrPort, bool) { return m.Mapped(Port{"tcp", port}) }

// Router returns the router that maps ports, or the zero Router.
func (m *Mapper) Router() Router {
	if m == nil {
		return Router{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.found
}

// Close removes all mappings, if the router answers. It returns after a few seconds at most, when all goroutines
// have ended. It does not cancel a pending request to the router, because the answer shows which mapping to
// remove.
func (m *Mapper) Close() error {
	m.work.Stop()
	m.work.Wait()
	return nil
}

func (m *Mapper) run(life context.Context) {
	for life.Err() == nil {
		ctx, cancel := context.WithTimeout(life, findTimeout)
		r, err := m.find(ctx)
		cancel()
		if err == nil {
			err = m.use(r)
		}
		m.log.Debug().Err(err).Msg("no router maps ports")
		m.await(findPeriod, nil)
	}
}

// await waits until news arrives, d has passed, or the Mapper is closed.
func (m *Mapper) await(d time.Duration, news <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-news:
	case <-m.work.Context().Done():
	}
}

// use keeps ports mapped until the router no longer answers, or the Mapper is closed.
func (m *Mapper) use(r router) error {
	for {
		err := m.renew(r)
		if err == nil {
			m.await(renewPeriod, m.news)
		}
		if m.work.Context().Err() != nil {
			m.unmap(r)
			err = m.work.Context().Err()
		}
		if err != nil {
			m.forget()
			return err
		}
	}
}

// renew extends the mappings of all wanted ports. If a request fails, the earlier mapping of that port stays
// until it expires.
func (m *Mapper) renew(r router) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	at, err := outsideOf(ctx, r)
	if err != nil {
		return fmt.Errorf("ask the router (%s) for its address: %w", r.how(), err)
	}
	m.mu.Lock()
	if m.found.Address != at {
		m.log.Info().Str("how", r.how()).Stringer("address", at).Msg("the router maps ports")
	}
	m.found = Router{r.how(), at}
	m.mu.Unlock()
	for p, was := range m.all() {
		if m.work.Context().Err() != nil {
			break
		}
		now, err := mapPort(ctx, r, p, was)
		if err != nil {
			m.log.Debug().Err(err).Uint16("port", p.Number).Str("protocol", p.Protocol).Msg("port not mapped")
			continue
		}
		m.mu.Lock()
		m.ports[p] = now
		m.mu.Unlock()
	}
	return nil
}

// mapPort requests the previous external port, or at first the one with the number of the local port. If that
// port is not available and no mapping is in effect, mapPort tries up to three random ports.
func mapPort(ctx context.Context, r router, p Port, was mapping) (mapping, error) {
	outside := was.outside
	if outside == 0 {
		outside = p.Number
	}
	asked := time.Now()
	got, err := r.addMapping(ctx, p, outside, lifetime)
	for range 3 {
		if err == nil || ctx.Err() != nil || was.lasts() {
			break
		}
		asked = time.Now()
		got, err = r.addMapping(ctx, p, uint16(10_000+rand.N(50_000)), lifetime)
	}
	if err == nil && got == 0 {
		err = errors.New("the router mapped port 0")
	}
	return mapping{got, asked.Add(lifetime)}, err
}

func (m *Mapper) all() map[Port]mapping {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.ports)
}

// forget records that there is no router. It keeps the numbers of the external ports, which the Mapper requests
// first when it finds a router again.
func (m *Mapper) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found = Router{}
	for p, was := range m.ports {
		m.ports[p] = mapping{outside: was.outside}
	}
}

// unmap removes all mappings.
func (m *Mapper) unmap(r router) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	for p, is := range m.all() {
		if !is.lasts() { // another machine may have the port by now
			continue
		}
		if err := r.removeMapping(ctx, p, is.outside); err != nil {
			m.log.Debug().Err(err).Uint16("port", is.outside).Msg("the mapping was not removed; it will expire")
		}
		if ctx.Err() != nil {
			break
		}
	}
}

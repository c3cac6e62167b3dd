package e2e

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	manet "github.com/multiformats/go-multiaddr/net"
	"golang.org/x/sync/errgroup"
)

// attacker returns a libp2p host without resource limits.
func attacker(t *testing.T, key crypto.PrivKey, more ...libp2p.Option) host.Host {
	t.Helper()
	unlimited, err := rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(rcmgr.InfiniteLimits), rcmgr.WithMetricsDisabled())
	if err != nil {
		t.Fatal(err)
	}
	h, err := libp2p.New(append(more, libp2p.Identity(key), libp2p.NoListenAddrs, libp2p.ResourceManager(unlimited), libp2p.DisableMetrics())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// newKey creates an identity.
func newKey(t *testing.T) crypto.PrivKey {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// garbage holds the invalid messages of an attacker. Each is sent on separate streams.
var garbage = map[string][]byte{
	"too long":      {0xff, 0xff, 0xff, 0x7f, 1, 2, 3},
	"not a message": {3, 0xff, 0xff, 0xff},
	"half":          {100, 1},
	"noise":         []byte(strings.Repeat("\x93\x07\xfe", 1000)),
}

// An attackedPeer is a peer with two slots that is under attack, with its use of resources before the
// attack.
type attackedPeer struct {
	victim *peerProcess
	at     p2ppeer.AddrInfo
	idle   status
	memory int // in bytes
}

func startAttack(t *testing.T, where *machine) attackedPeer {
	t.Helper()
	victim := where.startPeer(t, t.TempDir(), "--slots", "2")
	victim.awaitReady()
	at, err := p2ppeer.AddrInfoFromString(victim.addr)
	if err != nil {
		t.Fatal(err)
	}
	idle, err := victim.status()
	if err != nil {
		t.Fatal(err)
	}
	return attackedPeer{victim, *at, idle, memoryOf(t, victim)}
}

// expectService expects that the peer runs a job of an unknown submitter.
func (s attackedPeer) expectService(t *testing.T, stranger *machine) {
	t.Helper()
	j := stranger.submit(t, t.TempDir(), "--supernode", s.victim.addr, "-n", "2", "-w", "60", filepath.Join(bin, "ring"))
	if status := j.wait(); status != 0 {
		t.Errorf("a job during the attack: exit status %d", status)
	}
}

// expectGrowth expects that the peer's memory never exceeded the value before the attack by more than most
// bytes.
func (p *peerProcess) expectGrowth(t *testing.T, before, most int) {
	t.Helper()
	grown := peakOf(t, p) - before
	t.Logf("%d MiB before, %d MiB more at the most", before>>20, grown>>20)
	if grown > most {
		t.Errorf("the memory of the peer grew by %d MiB, want at most %d", grown>>20, most>>20)
	}
}

// expectOver expects that the peer uses no more resources than before. Not a single stream may be
// left: some protocols admit few streams, and those would stay if they had no deadline.
func (s attackedPeer) expectOver(t *testing.T, worst status) {
	t.Helper()
	expectNothingLeft(t, []*peerProcess{s.victim})
	var now status
	eventually(t, "the peer's resource use", func() (err error) {
		now, err = s.victim.status()
		if err == nil && (now.Use.Goroutines > s.idle.Use.Goroutines+100 || now.Use.Streams > s.idle.Use.Streams) {
			err = fmt.Errorf("the peer uses %+v, and used %+v before", now.Use, s.idle.Use)
		}
		return err
	})
	t.Logf("before %+v, at worst %+v, in the end %+v", s.idle.Use, worst.Use, now.Use)
}

// TestHostilePeer runs a peer that attacks another one. It sends garbage in every protocol, opens a
// thousand streams of each and abandons them, sends messages byte by byte, and connects again and
// again. The victim must name the attacker in a few log lines, bound its memory, and run jobs.
// Afterwards it must have no more goroutines and streams than before, although the attacker has
// closed nothing and continues (O4).
func TestHostilePeer(t *testing.T) {
	t.Parallel()
	s := startAttack(t, loopback)
	key := newKey(t)
	enemy := attacker(t, key)
	ctx, cancel := context.WithTimeout(t.Context(), longestAttack)
	defer cancel()
	if err := enemy.Connect(ctx, s.at); err != nil {
		t.Fatal(err)
	}
	var protocols []protocol.ID
	speaks, _ := enemy.Peerstore().GetProtocols(s.at.ID)
	for _, p := range speaks {
		if strings.HasPrefix(string(p), "/p2pmpi/") {
			protocols = append(protocols, p)
		}
	}
	if len(protocols) < 8 {
		t.Fatalf("the peer speaks %v, want all of this project's protocols", protocols)
	}
	silent := s.connectSilently(t)
	start := time.Now()
	var all, slow sync.WaitGroup
	t.Cleanup(slow.Wait) // ends when the test's context has ended
	for _, p := range protocols {
		sendSlowly(t.Context(), enemy, s.at.ID, p, &slow)
	}
	for _, p := range protocols {
		all.Go(func() { sendGarbage(ctx, enemy, s.at.ID, p) })
	}
	worst := s.victim.worstUntil(&all)
	if worst.Use.Streams < s.idle.Use.Streams+100 {
		t.Errorf("the peer used %+v with very many abandoned streams", worst.Use)
	}
	t.Logf("the attack in %d protocols took %v", len(protocols), time.Since(start))
	s.expectFewOfOne(t, append(attackers(t, key), enemy))
	eventually(t, "the log", logged(s.victim, enemy.ID().String()))
	lines := strings.Count(s.victim.log.String(), enemy.ID().String())
	if t.Logf("the attacker is named in %d lines", lines); lines > 50 {
		t.Error("want at most 50 lines that name the attacker")
	}
	s.expectService(t, loopback)
	s.victim.expectGrowth(t, s.memory, 96<<20)
	s.expectOver(t, worst)
	for _, c := range silent {
		c.SetDeadline(time.Now().Add(limit))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("an idle connection stays open")
		}
	}
}

// connectSilently makes TCP connections and sends nothing on them.
func (s attackedPeer) connectSilently(t *testing.T) (silent []net.Conn) {
	t.Helper()
	for _, a := range s.at.Addrs {
		network, address, err := manet.DialArgs(a)
		if err != nil || network != "tcp4" {
			continue
		}
		for range 16 {
			c, err := new(net.Dialer).DialContext(t.Context(), network, address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			silent = append(silent, c)
		}
	}
	if len(silent) == 0 {
		t.Fatalf("%v: no TCP address", s.at)
	}
	return silent
}

// slowly is the number of streams of each protocol on which an attacker sends slowly. It exceeds the number that
// may be left in the end.
const slowly = 24

// sendSlowly sends the beginning of a message on some streams, one byte at a time, until the victim resets them
// or ctx ends.
func sendSlowly(ctx context.Context, h host.Host, to p2ppeer.ID, p protocol.ID, all *sync.WaitGroup) {
	for range slowly {
		s, err := h.NewStream(ctx, to, p)
		if err != nil {
			continue
		}
		all.Go(func() {
			defer s.Reset()
			_, err := s.Write([]byte{0xff, 1}) // the length of the message
			for tick := time.Tick(500 * time.Millisecond); err == nil; {
				select {
				case <-tick:
					_, err = s.Write([]byte{0})
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

// sendGarbage sends garbage in a protocol, and abandons a thousand streams half-way. It ignores all
// errors.
func sendGarbage(ctx context.Context, h host.Host, to p2ppeer.ID, p protocol.ID) {
	for _, b := range garbage {
		for range 16 {
			s, err := h.NewStream(ctx, to, p)
			if err != nil {
				continue
			}
			s.SetDeadline(time.Now().Add(limit))
			s.Write(b)
			s.CloseWrite()
		}
	}
	for range 1000 {
		if s, err := h.NewStream(ctx, to, p); err == nil {
			s.SetDeadline(time.Now().Add(limit))
			s.Write([]byte{100})
		}
	}
}

const (
	crowd      = 200 // identities
	homes      = 4   // addresses of these identities, each within the limit for one address
	crowdLeave = 4   // streams of each protocol that each identity abandons
)

// TestHostileCrowd connects hundreds of identities to a peer. They abandon streams of every
// protocol half-way, while one more address floods the peer with connections. The peer must accept
// no more of those than allowed. Meanwhile it must run a job of an unknown submitter, and its
// memory must stay bounded. When the crowd has gone, nothing may be left (O4).
func TestHostileCrowd(t *testing.T) {
	t.Parallel()
	machines := withoutMDNS(newLAN(t, 3)) // on loopback, addresses are not limited
	s := startAttack(t, machines[0])
	origins := machines[1].addresses(t, 1+homes)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var all errgroup.Group
	all.SetLimit(8) // for machines with two processors
	enemies := make([]host.Host, crowd)
	for i := range enemies {
		enemies[i] = attacker(t, newKey(t), origins[1+i%homes].option())
		all.Go(func() error { return leaveStreams(ctx, enemies[i], s.at) })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	worst, err := s.victim.status()
	if err != nil || worst.Use.Streams < crowd {
		t.Errorf("the peer uses %+v during the attack: %v", worst.Use, err)
	}
	s.expectFewOfOne(t, attackers(t, newKey(t), origins[0].option()))
	s.expectFewFromOne(t, origins[0])
	s.expectService(t, machines[2])
	s.victim.expectGrowth(t, s.memory, 256<<20)
	for _, h := range enemies {
		all.Go(h.Close)
	}
	all.Wait()
	s.expectOver(t, worst)
}

// The limits of a peer for connections from others, as documented in docs/security.md.
const (
	connsOfPeer    = 8
	connsOfAddress = 64
)

// attackers returns hosts of one identity, half as many again as may be connected.
func attackers(t *testing.T, key crypto.PrivKey, options ...libp2p.Option) (all []host.Host) {
	t.Helper()
	for range connsOfPeer * 3 / 2 {
		all = append(all, attacker(t, key, options...))
	}
	return all
}

// expectFewOfOne connects hosts of one identity, and expects that exactly as many as allowed stay
// connected.
func (s attackedPeer) expectFewOfOne(t *testing.T, hosts []host.Host) {
	t.Helper()
	for _, h := range hosts {
		h.Connect(t.Context(), s.at)
	}
	eventually(t, "the connections of an identity", func() error {
		there := 0
		for _, h := range hosts {
			there += len(h.Network().ConnsToPeer(s.at.ID))
		}
		if there != connsOfPeer {
			return fmt.Errorf("%d are connected, want %d", there, connsOfPeer)
		}
		return nil
	})
}

// expectFewFromOne makes 200 connections from an address from which one identity has already
// connected. It expects that only the allowed number is answered.
func (s attackedPeer) expectFewFromOne(t *testing.T, from origin) {
	t.Helper()
	_, address, err := manet.DialArgs(s.at.Addrs[0])
	if err != nil {
		t.Fatal(err)
	}
	var all errgroup.Group
	all.SetLimit(8)
	var answered atomic.Int32
	for range 200 {
		all.Go(func() error {
			c, err := from.DialContext(t.Context(), "tcp", address)
			if err != nil {
				return err
			}
			t.Cleanup(func() { c.Close() })
			c.SetDeadline(time.Now().Add(limit))
			if _, err := c.Read(make([]byte, 1)); err == nil { // the name of a protocol
				answered.Add(1)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	if got, want := answered.Load(), int32(connsOfAddress-connsOfPeer); got != want {
		t.Errorf("%d connections of an address are answered, want %d", got, want)
	}
}

// leaveStreams connects, and abandons some streams of each protocol half-way.
func leaveStreams(ctx context.Context, h host.Host, to p2ppeer.AddrInfo) error {
	if err := h.Connect(ctx, to); err != nil {
		return err
	}
	speaks, err := h.Peerstore().GetProtocols(to.ID)
	for _, p := range speaks {
		for range crowdLeave {
			if s, err := h.NewStream(ctx, to.ID, p); err == nil {
				s.SetDeadline(time.Now().Add(limit))
				s.Write([]byte{100})
			}
		}
	}
	return err
}

// longestAttack is the longest duration of an attack, which the victim may slow down.
const longestAttack = 10 * time.Second

// memoryOf returns the resident memory of a p2pboot, in bytes, and peakOf the maximum so far.
func memoryOf(t *testing.T, p *peerProcess) int { return p.memory(t, "VmRSS:") }
func peakOf(t *testing.T, p *peerProcess) int   { return p.memory(t, "VmHWM:") }

func (p *peerProcess) memory(t *testing.T, field string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no " + field)
	return 0
}

// worstUntil returns the status in which the peer had most streams, until all are done. Silent
// streams end after a while.
func (p *peerProcess) worstUntil(all *sync.WaitGroup) (worst status) {
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }() // ends with the last of them
	for {
		if s, err := p.status(); err == nil && s.Use.Streams >= worst.Use.Streams {
			worst = s
		}
		select {
		case <-done:
			return worst
		case <-time.After(50 * time.Millisecond):
		}
	}
}

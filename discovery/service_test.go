package discovery

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
)

// wantAll fails unless s finds exactly the peers of want as candidates.
func wantAll(t *testing.T, s *Service, want []*Service) {
	t.Helper()
	candidates, considered, err := s.Candidates(testContext(t), Need{All: true})
	if err != nil {
		t.Fatal(err)
	}
	found := ids(candidates)
	for i, w := range want {
		if !found[w.host.ID()] {
			t.Errorf("peer %d is not a candidate; considered %v", i, considered)
		}
	}
	if len(found) != len(want) {
		t.Errorf("got %d candidates, want %d", len(found), len(want))
	}
}

func TestPeersTolerateADeadSupernode(t *testing.T) {
	super := newHost(t)
	s := newService(t, super, testConfig())
	peers := make([]*Service, 6)
	for i := range peers {
		peers[i] = boot(t, testConfig(super))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := super.Close(); err != nil {
		t.Fatal(err)
	}
	wantAll(t, peers[0], peers)
	wantAll(t, peers[len(peers)-1], peers)
	wantAll(t, peers[2], peers)
}

func TestPeersThatBootTogetherConnect(t *testing.T) {
	super := newHost(t)
	s := newService(t, super, testConfig())
	peers := make([]*Service, 6)
	var wg sync.WaitGroup
	for i := range peers {
		peers[i] = newService(t, newHost(t), testConfig(super))
	}
	for _, p := range peers {
		wg.Go(func() {
			if err := p.Introduced(testContext(t)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.Close()
	super.Close()
	for _, p := range peers {
		wantAll(t, p, peers)
	}
}

func TestCandidatesReportRefusals(t *testing.T) {
	h := newHost(t)
	s := newService(t, h, testConfig())

	full := newHost(t)
	fullCfg := testConfig()
	fullCfg.Offer = offering(4, 0)
	newService(t, full, fullCfg)

	stranger := newHost(t)
	strangerCfg := testConfig()
	strangerCfg.Network = "other"
	newService(t, stranger, strangerCfg)

	submitter := newHost(t)
	submitterCfg := testConfig()
	submitterCfg.Offer, submitterCfg.DHTServer = nil, false
	newService(t, submitter, submitterCfg)

	gone := newHost(t)
	impostor := newHost(t)
	impostor.SetStreamHandler(offerProtocol, func(st network.Stream) { st.Write([]byte{2, 0x0a, 0}); st.Close() })

	want := map[p2ppeer.ID]Reason{
		full.ID(): Full, stranger.ID(): OtherNetwork, submitter.ID(): OffersNothing,
		gone.ID(): Unreachable, impostor.ID(): BadOffer,
	}
	for _, o := range []host.Host{full, stranger, submitter, gone, impostor} {
		s.book.hint(addrInfo(o), time.Now())
	}
	gone.Close()
	candidates, considered, err := s.Candidates(testContext(t), Need{Slots: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(candidates) != 1 || candidates[0].AddrInfo.ID != h.ID() || candidates[0].RTT != 0 {
		t.Errorf("got %v, want the local peer only, at 0", candidates)
	}
	got := make(map[p2ppeer.ID]Reason)
	for _, c := range considered {
		got[c.Peer] = c.Reason
	}
	for id, reason := range want {
		if r, ok := got[id]; !ok || r != reason {
			t.Errorf("%s: got %v (%t), want %v", id, r, ok, reason)
		}
	}
}

// TestOffersNameTheMachine: each offer, including the local peer's own, contains the machine's name for the
// asking peer.
func TestOffersNameTheMachine(t *testing.T) {
	named := func(asker p2ppeer.ID) string { return "of-" + asker.String() }
	cfg := testConfig()
	cfg.Machine = named
	s, other := newService(t, newHost(t), cfg), newService(t, newHost(t), cfg)
	unnamed := newService(t, newHost(t), testConfig())
	s.book.hint(addrInfo(other.host), time.Now())
	s.book.hint(addrInfo(unnamed.host), time.Now())
	candidates, _, err := s.Candidates(testContext(t), Need{All: true})
	if err != nil || len(candidates) != 3 {
		t.Fatalf("the candidates are %v, %v, want 3", candidates, err)
	}
	for _, c := range candidates {
		want := named(s.host.ID())
		if c.AddrInfo.ID == unnamed.host.ID() {
			want = ""
		}
		if c.Offer.Machine != want {
			t.Errorf("%s names its machine %q, want %q", c.AddrInfo.ID, c.Offer.Machine, want)
		}
	}
}

func TestSilentPeerIsNotWaitedForWhenOthersSuffice(t *testing.T) {
	s := newService(t, newHost(t), testConfig())
	silent := newHost(t)
	silent.SetStreamHandler(offerProtocol, func(network.Stream) {}) // never answers
	s.book.hint(addrInfo(silent), time.Now())
	other := newService(t, newHost(t), testConfig())
	s.book.hint(addrInfo(other.host), time.Now())

	s.cfg.AskTimeout = time.Hour
	candidates, considered, err := s.Candidates(testContext(t), Need{Slots: 4})
	if err != nil {
		t.Fatal(err)
	}
	if len(candidates) != 2 || candidates[0].RTT != 0 || candidates[1].RTT <= 0 {
		t.Errorf("got %v, want the local peer and one more", candidates)
	}
	if len(considered) != 1 || considered[0].Reason != Silent {
		t.Errorf("got %v, want one silent peer", considered)
	}
	known := s.Peers()
	if len(known) != 1 || known[0].AddrInfo.ID != other.host.ID() || known[0].RTT <= 0 {
		t.Errorf("got %v, want the peer that answered", known)
	}
}

func TestSilentPeerIsGivenUpAfterAskTimeout(t *testing.T) {
	cfg := testConfig()
	cfg.Offer, cfg.DHTServer = nil, false
	cfg.AskTimeout = 50 * time.Millisecond
	s := newService(t, newHost(t), cfg)
	silent := newHost(t)
	silent.SetStreamHandler(offerProtocol, func(network.Stream) {})
	s.book.hint(addrInfo(silent), time.Now())
	candidates, considered, err := s.Candidates(testContext(t), Need{All: true})
	if err != nil || len(candidates) != 0 {
		t.Errorf("got %v, %v, want no candidates", candidates, err)
	}
	if len(considered) != 1 {
		t.Errorf("got %v, want the silent peer", considered)
	}
}

// freeze makes a known peer keep its connections and answer nothing, like a stopped process.
func freeze(t *testing.T, s *Service) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []protocol.ID{offerProtocol, kadProtocol(s.cfg.Network)} {
		s.host.SetStreamHandler(p, func(network.Stream) {})
	}
	for _, conn := range s.host.Network().Conns() {
		for _, stream := range conn.GetStreams() {
			stream.Reset()
		}
	}
}

func TestFrozenPeerDoesNotDelayOthers(t *testing.T) {
	super := newHost(t)
	peers := []*Service{newService(t, super, testConfig())}
	for range 3 {
		peers = append(peers, boot(t, testConfig(super)))
	}
	freeze(t, peers[1])
	cfg := testConfig(super)
	cfg.SearchTimeout, cfg.AskTimeout = 500*time.Millisecond, 500*time.Millisecond
	newcomer := boot(t, cfg)
	wantAll(t, newcomer, []*Service{peers[0], peers[2], peers[3], newcomer})
}

func TestUnreachableSupernodeIsReported(t *testing.T) {
	gone := newHost(t)
	cfg := testConfig(gone)
	gone.Close()
	s := newService(t, newHost(t), cfg)
	err := s.Introduced(testContext(t))
	if err == nil {
		t.Fatal("the peer was introduced without a supernode")
	}
	for _, want := range []string{"no supernode reached", cfg.Supernodes[0].Addrs[0].String(), "connection refused"} {
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %q, want one line with %q", err, want)
		}
	}
}

func TestSupernodeOfOtherNetworkIsRefused(t *testing.T) {
	super := newHost(t)
	other := testConfig()
	other.Network = "other"
	newService(t, super, other)
	s := newService(t, newHost(t), testConfig(super))
	err := s.Introduced(testContext(t))
	if err == nil || !strings.Contains(err.Error(), `it belongs to network "other", not "test"`) {
		t.Errorf("got %v, want an error that names the other network", err)
	}
}

// TestSupernodeThatHasJustStartedIsMet: the supernode serves its DHT only after it has been reached.
func TestSupernodeThatHasJustStartedIsMet(t *testing.T) {
	super := newHost(t)
	s := newService(t, newHost(t), testConfig(super))
	ctx := testContext(t)
	for len(super.Network().ConnsToPeer(s.host.ID())) == 0 {
		if ctx.Err() != nil {
			t.Fatal("the supernode was never reached")
		}
		runtime.Gosched()
	}
	newService(t, super, testConfig())
	if err := s.Introduced(ctx); err != nil {
		t.Error(err)
	}
}

func TestIntroductionIsRetriedUntilTheSupernodeStarts(t *testing.T) {
	key, _, err := crypto.GenerateEd25519Key(nil)
	if err != nil {
		t.Fatal(err)
	}
	first := newHost(t, libp2p.Identity(key))
	addr := first.Addrs()[0]
	cfg := testConfig(first)
	cfg.RetryMin, cfg.RetryMax = 10*time.Millisecond, 20*time.Millisecond
	first.Close()
	s := newService(t, newHost(t), cfg)
	ctx := testContext(t)
	if err := s.Introduced(ctx); err == nil {
		t.Fatal("the peer was introduced without a supernode")
	}
	super := newService(t, newHost(t, libp2p.Identity(key), libp2p.ListenAddrs(addr)), testConfig())
	for s.Introduced(ctx) != nil {
		if ctx.Err() != nil {
			t.Fatal("the peer was never introduced")
		}
	}
	wantAll(t, s, []*Service{s, super})
}

func TestLANPeersConnectWithoutSupernode(t *testing.T) {
	cfg := testConfig()
	cfg.MDNS = true // does not use the LAN, because these hosts listen only on loopback
	a := newService(t, newHost(t), cfg)
	b := newService(t, newHost(t), testConfig())
	if err := a.Introduced(testContext(t)); err != nil {
		t.Fatal(err)
	}
	(&lan{a}).HandlePeerFound(addrInfo(b.host))
	ctx := testContext(t)
	for {
		candidates, _, err := a.Candidates(ctx, Need{All: true})
		if err != nil {
			t.Fatal(err)
		}
		if ids(candidates)[b.host.ID()] {
			break
		}
	}
	wantAll(t, b, []*Service{a, b})
}

// TestConnectedPeerIsAskedBeforeItIsIdentified: libp2p learns a peer's protocols some time after the
// connection. A search in the meantime does not miss the peer.
func TestConnectedPeerIsAskedBeforeItIsIdentified(t *testing.T) {
	late := newHost(t)
	other := newService(t, late, testConfig())
	looked := make(chan struct{})
	late.SetStreamHandler(identify.ID, func(st network.Stream) {
		<-looked
		st.Reset()
	})
	cfg := testConfig()
	cfg.Offer = sync.OnceValue(func() Offer { // the search has already collected near peers
		close(looked)
		return offering(2, 2)()
	})
	s := newService(t, newHost(t), cfg)
	if err := late.Connect(testContext(t), addrInfo(s.host)); err != nil {
		t.Fatal(err)
	}
	wantAll(t, s, []*Service{other, s})
}

func TestCloseDoesNotWaitForHostileStreams(t *testing.T) {
	h := newHost(t)
	s := newService(t, h, testConfig())
	hostile := newHost(t)
	knows(hostile, h)
	stream, err := hostile.NewStream(testContext(t), h.ID(), offerProtocol)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Write([]byte{100}); err != nil { // announces a message, sends none
		t.Fatal(err)
	}
	begin := time.Now()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took >= serveTimeout {
		t.Errorf("Close took %v", took)
	}
}

func TestConfigErrorsAreAllReported(t *testing.T) {
	_, err := New(t.Context(), nil, Config{Network: "a/b"})
	if err == nil || !strings.Contains(err.Error(), `"a/b"`) || !strings.Contains(err.Error(), "ask timeout") {
		t.Errorf("got %v, want an error that names every wrong field", err)
	}
}

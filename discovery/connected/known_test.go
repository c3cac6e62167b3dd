package connected

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

var testNow = time.UnixMilli(1_700_000_000_000)

func id(i int) p2ppeer.ID { return p2ppeer.ID(fmt.Sprintf("peer-%04d", i)) }

// newID returns the ID of a new key.
func newID(t *testing.T) p2ppeer.ID {
	t.Helper()
	_, key, err := crypto.GenerateEd25519Key(nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err := p2ppeer.IDFromPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// at returns peer i with an address of its own.
func at(i int) p2ppeer.AddrInfo {
	return p2ppeer.AddrInfo{ID: id(i), Addrs: []ma.Multiaddr{ma.StringCast(fmt.Sprintf("/ip4/192.0.2.1/tcp/%d", i+1))}}
}

func noPeer(p2ppeer.ID) bool { return false }

// those returns a function that reports the first n peers as connected.
func those(n int) func(p2ppeer.ID) bool {
	return func(p p2ppeer.ID) bool { return p < id(n) }
}

// knownPeersOf returns the known peers of a peer that has met n others.
func knownPeersOf(n int) *knownPeers {
	q := newKnownPeers()
	for i := range n {
		q.met(at(i), true, testNow)
	}
	return q
}

// tries simulates a duration in steps of one second, in which all attempts fail. It returns when peer i
// was tried.
func tries(q *knownPeers, i int, connected func(p2ppeer.ID) bool, d time.Duration) (after []time.Duration) {
	for t := time.Duration(0); t <= d; t += time.Second {
		for _, info := range q.due(testNow.Add(t), connected) {
			if q.failed(info.ID, testNow.Add(t)); info.ID == id(i) {
				after = append(after, t)
			}
		}
	}
	return after
}

func TestKnownPeersAreRetriedIndefinitely(t *testing.T) {
	seconds := func(n ...int) (out []time.Duration) {
		for _, s := range n {
			out = append(out, time.Duration(s)*time.Second)
		}
		return out
	}
	for _, tt := range []struct {
		name      string
		connected func(p2ppeer.ID) bool
		want      []time.Duration
	}{
		{"at growing intervals by a connected peer", those(2), seconds(0, 5, 15, 35, 75, 155)},
		{"twice a minute by a peer without connections", noPeer, seconds(0, 5, 15, 35, 65, 95, 125, 155)},
		{"not at all while connected", those(3), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tries(knownPeersOf(3), 2, tt.connected, 170*time.Second); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	q := knownPeersOf(3)
	tries(q, 2, those(2), 4*time.Hour)
	if got := len(tries(q, 2, those(2), time.Hour)); got != 0 { // this hour has already passed
		t.Fatalf("the known peers were tried %d times in an hour that had passed", got)
	}
	q.retryNow()
	if got := tries(q, 2, those(2), 0); len(got) != 1 {
		t.Errorf("peers were tried at %v after the change of network, want at once", got)
	}
}

// TestKnownPeersAreTriedOneAtATimeWithManyConnections: with many connections, one of the other peers is
// tried at a time, and all have their turn.
func TestKnownPeersAreTriedOneAtATimeWithManyConnections(t *testing.T) {
	q := knownPeersOf(enoughConnected + 100)
	tried := make(map[p2ppeer.ID]bool)
	times := 0
	for i := range 12 * 60 * 2 { // in steps of five seconds
		due := q.due(testNow.Add(time.Duration(i)*5*time.Second), those(enoughConnected))
		for _, info := range due {
			tried[info.ID] = true
			times++
		}
		if len(due) > 1 {
			t.Fatalf("%d peers were tried at once", len(due))
		}
	}
	if len(tried) != 100 || times > 2*60*2 {
		t.Errorf("%d of 100 peers were tried, %d tries in two hours", len(tried), times)
	}
}

// TestKnownPeerThatDisconnects: a peer that disconnects at once is tried at growing intervals.
func TestKnownPeerThatDisconnects(t *testing.T) {
	q := knownPeersOf(2)
	times := 0
	for i := range 3600 {
		now := testNow.Add(time.Duration(i) * time.Second)
		for _, info := range q.due(now, those(1)) {
			q.met(info, true, now)
			times++
		}
	}
	if times < 2 || times > 15 {
		t.Errorf("the peers were tried %d times in an hour", times)
	}
}

// TestKnownPeerThatIsLost: a peer that is lost after a long connection is tried at once.
func TestKnownPeerThatIsLost(t *testing.T) {
	q := knownPeersOf(2)
	tries(q, 1, those(1), 10*time.Minute)
	q.met(at(1), true, testNow.Add(11*time.Minute))
	q.due(testNow.Add(30*time.Minute), those(2))
	if due := q.due(testNow.Add(30*time.Minute), those(1)); len(due) != 1 || due[0].ID != id(1) {
		t.Errorf("the peers that are due are %v, want only peer 1", due)
	}
}

func TestKnownPeersAreBounded(t *testing.T) {
	q := newKnownPeers()
	q.met(at(0), true, testNow.Add(-time.Hour))
	q.met(at(1), false, testNow.Add(-time.Hour))
	for i := 2; i < 10*maxKnown; i++ {
		q.heard(at(i))
	}
	if len(q.all) != maxKnown || q.all[id(1)] == nil {
		t.Fatalf("%d peers are known; want a peer that was never met forgotten", len(q.all))
	}
	for i := 10 * maxKnown; i < 20*maxKnown; i++ {
		q.met(at(i), false, testNow)
	}
	if len(q.all) != maxKnown || q.all[id(0)] == nil || q.all[id(1)] != nil {
		t.Errorf("%d peers are known; want the peer that was met longest ago forgotten", len(q.all))
	}
	many := at(0)
	for i := range 10 * maxAddrs {
		many.Addrs = append(many.Addrs, at(i).Addrs...)
	}
	q.heard(many)
	q.met(many, true, testNow)
	if got := len(q.all[id(0)].info.Addrs); got != maxAddrs {
		t.Errorf("%d addresses of the peer are kept, want %d", got, maxAddrs)
	}
}

// TestConnectedPeerStaysKnown: a peer that was identified long ago and is still connected is not forgotten in
// favour of one that was connected more recently for a moment.
func TestConnectedPeerStaysKnown(t *testing.T) {
	q := knownPeersOf(maxKnown)
	first := func(p p2ppeer.ID) bool { return p == id(0) }
	q.due(testNow.Add(time.Hour), first)
	for i := range maxKnown - 1 {
		q.met(at(maxKnown+i), true, testNow.Add(time.Minute))
	}
	if q.all[id(0)] == nil {
		t.Error("the connected peer is forgotten")
	}
}

func TestLongAddressesAreNotKept(t *testing.T) {
	long := ma.StringCast("/dns4/" + strings.Repeat("a", 8<<10) + "/tcp/1")
	q := newKnownPeers()
	q.met(p2ppeer.AddrInfo{ID: id(0), Addrs: append([]ma.Multiaddr{long}, at(0).Addrs...)}, true, testNow)
	if got := q.all[id(0)].info.Addrs; len(got) != 1 || !got[0].Equal(at(0).Addrs[0]) {
		t.Errorf("%d addresses of the peer are kept, want the short one", len(got))
	}
}

// TestRestoredPeersAreDialledOnce: a peer of a job whose connection was lost is dialled by the watch, and
// by no other core until the job is over.
func TestRestoredPeersAreDialledOnce(t *testing.T) {
	w, q := newWatch(), knownPeersOf(2)
	q.restoring = w.restoring
	w.decide(testNow, map[p2ppeer.ID]partnerState{id(0): {conns: []connState{{id: "a"}}}, id(1): {}}, nil)
	w.decide(testNow, map[p2ppeer.ID]partnerState{id(0): {}, id(1): {}}, nil)
	if due := q.due(testNow, noPeer); len(due) != 1 || due[0].ID != id(1) {
		t.Errorf("got %v, want only the peer that was never connected", due)
	}
	w.decide(testNow, nil, nil)
	if due := q.due(testNow, noPeer); len(due) != 1 || due[0].ID != id(0) {
		t.Errorf("after the job: due %v, want the other peer", due)
	}
}

func TestKnownPeersAreForgotten(t *testing.T) {
	q := newKnownPeers()
	q.heard(at(0))
	q.met(at(1), true, testNow)
	q.met(at(2), true, testNow.Add(-forgetAfter))
	tries(q, 0, noPeer, 2*time.Hour)
	if q.all[id(0)] != nil || q.all[id(1)] == nil || q.all[id(2)] != nil {
		t.Errorf("the known peers are %v, want only the one of the job", q.list())
	}
}

func TestKnownPeersArePersistent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "peers")
	q := newKnownPeers()
	var want []p2ppeer.ID
	for i := range 3 {
		peer := newID(t)
		q.met(p2ppeer.AddrInfo{ID: peer, Addrs: at(i).Addrs}, i > 0, testNow)
		want = append(want, peer)
	}
	rumour := newID(t)
	q.heard(p2ppeer.AddrInfo{ID: rumour, Addrs: at(9).Addrs})
	if err := q.remember(file); err != nil {
		t.Fatal(err)
	}
	got, err := recall(file, testNow.Add(time.Hour))
	if err != nil || len(got.all) != 3 {
		t.Fatalf("recall returned %d peers, %v, want %d", len(got.all), err, 3)
	}
	for i, peer := range want {
		a := got.all[peer]
		if a == nil || !a.met.Equal(testNow) || a.reached != (i > 0) || len(a.info.Addrs) != 1 || !a.info.Addrs[0].Equal(at(i).Addrs[0]) {
			t.Errorf("peer %d: got %+v", i, a)
		}
	}
	if got, err := recall(file, testNow.Add(2*forgetAfter)); err != nil || len(got.all) != 0 {
		t.Errorf("recall returned %d peers after a long time, %v", len(got.all), err)
	}
}

// FuzzRecall reads arbitrary files.
func FuzzRecall(f *testing.F) {
	f.Add([]byte(`[{"peer":"12D3KooWGzxzKZYveHXtpG6AsrUJBcWxHBFS2HsEoGTxrMLvKXtf","addrs":["/ip4/192.0.2.1/tcp/1","x"],"met":"2026-01-01T00:00:00Z"}]`))
	f.Add([]byte(`[{"peer":""}]`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "peers")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		q, err := recall(file, testNow)
		if err != nil || len(q.all) > maxKnown {
			t.Fatalf("recall returned %d peers, %v", len(q.all), err)
		}
		if err := q.remember(file); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAllKnownPeersAreRetried simulates peers that come and go at random. Each absent peer is tried
// again within little more than the longest pause.
func TestAllKnownPeersAreRetried(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	q := knownPeersOf(20)
	online := make(map[p2ppeer.ID]bool)
	away := make(map[p2ppeer.ID]time.Time)
	for i := range 6 * 3600 {
		now := testNow.Add(time.Duration(i) * time.Second)
		if rng.IntN(30) == 0 {
			p := id(rng.IntN(20))
			if online[p] = !online[p]; !online[p] {
				away[p] = now
			}
		}
		for _, info := range q.due(now, func(p p2ppeer.ID) bool { return online[p] }) {
			away[info.ID] = now
			q.failed(info.ID, now)
		}
		for p, since := range away {
			if d := now.Sub(since); !online[p] && d > longestPause+time.Second {
				t.Fatalf("%s was not tried for %v", p, d)
			}
		}
	}
}

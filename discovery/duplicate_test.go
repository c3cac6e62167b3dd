package discovery

import (
	"bytes"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/discovery/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// bootCounted starts a peer with an identity, and returns the duplicates of which the peer is notified.
func bootCounted(t *testing.T, key crypto.PrivKey, supernodes ...host.Host) (*Service, <-chan *DuplicateError) {
	t.Helper()
	told := make(chan *DuplicateError, 1)
	cfg := testConfig(supernodes...)
	cfg.Duplicate = func(e *DuplicateError) { told <- e }
	s := newService(t, newHost(t, libp2p.Identity(key)), cfg)
	if err := s.Introduced(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return s, told
}

// TestDuplicateIdentityIsDetected starts a peer, and then another with its identity. The supernode tells
// the latter before it is introduced.
func TestDuplicateIdentityIsDetected(t *testing.T) {
	super := newHost(t)
	newService(t, super, testConfig())
	key, _ := newKey(t)
	original, toldOriginal := bootCounted(t, key, super)
	copied, told := bootCounted(t, key, super)
	select {
	case e := <-told:
		if e.Addr == nil || !ipConnected(super, e.Addr.String()) || copied.host.ID() != original.host.ID() {
			t.Errorf("the copy was notified of %v", e)
		}
	default:
		t.Fatal("the copy was introduced without being notified")
	}
	original.duplicates.check(testContext(t), super.ID())
	if len(toldOriginal) > 0 {
		t.Errorf("the original was notified: %v", <-toldOriginal)
	}
}

func ipConnected(h host.Host, addr string) bool {
	for _, c := range h.Network().Conns() {
		if c.RemoteMultiaddr().String() == addr {
			return true
		}
	}
	return false
}

// TestRestartIsNotADuplicateIdentity: the supernode still has a connection to a process that no longer
// answers, as after a power failure, and several to the new one.
func TestRestartIsNotADuplicateIdentity(t *testing.T) {
	skip.Long(t)
	super := newHost(t)
	newService(t, super, testConfig())
	key, _ := newKey(t)
	before, _ := bootCounted(t, key, super)
	freeze(t, before)
	before.host.SetStreamHandler(duplicateProtocol, func(network.Stream) {})
	after, told := bootCounted(t, key, super)
	knows(super, after.host)
	if err := super.Connect(network.WithForceDirectDial(testContext(t), "test"), addrInfo(after.host)); err != nil {
		t.Fatal(err)
	}
	after.duplicates.check(testContext(t), super.ID())
	if len(told) > 0 {
		t.Errorf("the restarted peer was notified of a duplicate: %v", <-told)
	}
	if n := len(super.Network().ConnsToPeer(after.host.ID())); n < 2 {
		t.Errorf("the supernode has %d connections, want the old one and the new", n)
	}
}

// TestUnprovenDuplicateIsIgnored: a supernode claims a duplicate that it cannot prove.
func TestUnprovenDuplicateIsIgnored(t *testing.T) {
	super := newHost(t)
	newService(t, super, testConfig())
	key, id := newKey(t)
	liar, _ := newKey(t)
	seal := func(p proof, key crypto.PrivKey) []byte { return sealUnchecked(t, &p, key) }
	s, told := bootCounted(t, key, super)
	duplicate := func(nonce []byte) proof { return proof{nonce, newInstance(), time.Hour} }
	for name, lie := range map[string]func(nonce []byte) []byte{
		"signed by another peer": func(nonce []byte) []byte { return seal(duplicate(nonce), liar) },
		"for another nonce":      func([]byte) []byte { return seal(duplicate(newInstance()), key) },
		"by this process":        func(nonce []byte) []byte { return seal(proof{nonce, s.duplicates.instance, time.Hour}, key) },
		"younger":                func(nonce []byte) []byte { return seal(proof{nonce, newInstance(), 0}, key) },
		"an offer":               func([]byte) []byte { return sealUnchecked(t, new(testOffer(id)), key) },
		"nonsense":               func([]byte) []byte { return []byte("nonsense") },
		"too long":               func([]byte) []byte { return make([]byte, maxProof+1) },
	} {
		super.SetStreamHandler(duplicateProtocol, answering(lie))
		s.duplicates.check(testContext(t), super.ID())
		if len(told) > 0 {
			t.Errorf("%s: notified: %v", name, <-told)
		}
	}
	super.SetStreamHandler(duplicateProtocol, answering(func(nonce []byte) []byte { return seal(duplicate(nonce), key) }))
	s.duplicates.check(testContext(t), super.ID())
	if len(told) == 0 {
		t.Error("the peer was not notified of a proven duplicate")
	}
}

// answering serves duplicate requests with a forged proof.
func answering(lie func(nonce []byte) []byte) network.StreamHandler {
	return func(stream network.Stream) {
		defer stream.Close()
		var req pb.TwinRequest
		if pbio.NewDelimitedReader(stream, maxDuplicate).ReadMsg(&req) == nil {
			resp := &pb.TwinResponse{Envelope: lie(req.GetNonce()), Address: []byte("nowhere")}
			_ = pbio.NewDelimitedWriter(stream).WriteMsg(resp) // the asking peer may have closed the stream
		}
	}
}

func TestProofYields(t *testing.T) {
	a, b := bytes.Repeat([]byte{1}, instanceSize), bytes.Repeat([]byte{2}, instanceSize)
	for _, tt := range []struct {
		own, other proof
		want       bool
	}{
		{proof{Instance: b, Up: time.Second}, proof{Instance: a, Up: time.Minute}, true},
		{proof{Instance: a, Up: time.Minute}, proof{Instance: b, Up: time.Second}, false},
		{proof{Instance: a, Up: time.Minute + 1}, proof{Instance: b, Up: time.Minute}, true},
		{proof{Instance: b, Up: time.Minute + 1}, proof{Instance: a, Up: time.Minute}, false},
	} {
		if got := tt.own.mustYield(tt.other); got != tt.want {
			t.Errorf("process %v must yield to process %v: got %t", tt.own, tt.other, got)
		}
	}
}

func FuzzOpenProof(f *testing.F) {
	key, id := fixedKey(f)
	nonce := bytes.Repeat([]byte{7}, nonceSize)
	f.Add(sealUnchecked(f, &proof{nonce, newInstance(), time.Hour}, key))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := openProof(data, id, nonce)
		if err == nil && (len(p.Instance) != instanceSize || p.Up < 0) {
			t.Errorf("an invalid proof was opened: %+v", p)
		}
	})
}

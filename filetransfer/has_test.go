package filetransfer

import (
	"bytes"
	"slices"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
)

func TestHasAnswersOnlyAdmittedPeers(t *testing.T) {
	asker, peer := newPair(t)
	asker.host.Peerstore().AddAddrs(peer.host.ID(), peer.host.Addrs(), peerstore.PermanentAddrTTL)
	here, err := peer.Store().Put(t.Context(), job, []byte("here"))
	if err != nil {
		t.Fatal(err)
	}
	digests := []Digest{{1}, here, {2}}
	if _, err := asker.Cached(t.Context(), peer.host.ID(), digests); err == nil {
		t.Error("the peer answers before Tell was called")
	}
	admitted := true
	stop := peer.Tell(func(id p2ppeer.ID) bool { return admitted && id == asker.host.ID() })
	got, err := asker.Cached(t.Context(), peer.host.ID(), digests)
	if err != nil || !slices.Equal(got, []bool{false, true, false}) {
		t.Errorf("Cached returned %v, %v", got, err)
	}
	if got, err := peer.Cached(t.Context(), peer.host.ID(), digests); err != nil || !slices.Equal(got, []bool{false, true, false}) {
		t.Errorf("the peer asked itself: got %v, %v", got, err)
	}
	admitted = false
	if _, err := asker.Cached(t.Context(), peer.host.ID(), digests); err == nil {
		t.Error("a peer that is not admitted gets an answer")
	}
	admitted = true
	stop()
	if _, err := asker.Cached(t.Context(), peer.host.ID(), digests); err == nil {
		t.Error("the peer answers after stop")
	}
	if _, err := asker.Cached(t.Context(), peer.host.ID(), make([]Digest, MaxAsked+1)); err == nil {
		t.Error("a query for too many digests was sent")
	}
}

// FuzzQuestion: for any input, the number of digests is at most MaxAsked and at most the number in the input.
func FuzzQuestion(f *testing.F) {
	f.Add([]byte{1})
	f.Add(append([]byte{1}, make([]byte, len(Digest{}))...))
	f.Add([]byte{MaxAsked + 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		digests, err := readQuestion(bytes.NewReader(b))
		if err == nil && (len(digests) > MaxAsked || len(b) < 1+len(digests)*len(Digest{})) {
			t.Fatalf("%d digests of %d bytes", len(digests), len(b))
		}
	})
}

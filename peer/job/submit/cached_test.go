package submit

import (
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// TestCachedContentsCountOncePerCandidate: known candidates are asked again after each search.
func TestCachedContentsCountOncePerCandidate(t *testing.T) {
	b := newBed(t, never, 1)
	peer := b.peers[0]
	here, err := peer.files.Store().Put(t.Context(), "job", []byte("input"))
	if err != nil {
		t.Fatal(err)
	}
	stop := peer.files.Tell(func(p2ppeer.ID) bool { return true })
	j := newRun(b.submitter, b.request(1, 1))
	j.inputs = filetransfer.Manifest{{Path: "input", Digest: here, Size: 5}}
	candidates := []reservation.Candidate{{Peer: peer.ID()}}
	for search := range 2 {
		(&slotSearch{j: j}).askCached(t.Context(), candidates)
		if got := candidates[0].Cached; got != 5 {
			t.Errorf("search %d: the peer has %d bytes, want 5", search+1, got)
		}
	}
	stop()
	(&slotSearch{j: j}).askCached(t.Context(), candidates)
	if got := candidates[0].Cached; got != 0 {
		t.Errorf("a peer that no longer shares its files has %d bytes, want 0", got)
	}
}

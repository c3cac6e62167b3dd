package filetransfer

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/filetransfer/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/logtest"
)

// TestNoMoreIsUnderWayThanIsAcknowledged: a file arrives over a link beyond the local network, and a peer that
// does not report what has arrived gets only the first bytes.
func TestNoMoreIsUnderWayThanIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		submitter, peer := newOffline(t, "origin", zerolog.Nop()), newOffline(t, "peer", zerolog.Nop())
		b := content(1, 3*PieceBytes+1)
		w, _ := offer(t, submitter, peer, b)
		peer.connect(map[p2ppeer.ID]*Service{"origin": submitter})
		peer.far = func(link) bool { return true }
		if err := peer.Fetch(t.Context(), "origin", job, []Want{w}, nil); err != nil {
			t.Fatal(err)
		}
		wantFile(t, peer.store.Path(w.Digest), b)

		ours, theirs := net.Pipe()
		defer theirs.Close()
		go submitter.serveLink(pipeLink{ours}, "peer") // ends after a stall
		ask := encodeRequest(request{items: []pieceID{{digest: w.Digest}}})
		if err := pbWriter(encodeOpen(opening{job: job, units: 1, counts: true}), ask)(theirs); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		n, _ := io.Copy(io.Discard, theirs) // until the sender gives up
		if n == 0 || n > firstWindow {
			t.Errorf("%d bytes came, want some, and at most %d", n, firstWindow)
		}
		if took := time.Since(begun); took != stallTimeout {
			t.Errorf("given up after %v, want %v", took, stallTimeout)
		}
	})
}

// TestO4PeerThatSaysWhatCannotHaveComeIsNamed: the log names a peer that reports an impossible number of bytes.
func TestO4PeerThatSaysWhatCannotHaveComeIsNamed(t *testing.T) {
	for name, counts := range map[string]bool{"more than was sent": true, "which it has not announced": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log logtest.Log
				submitter := newOffline(t, "origin", zerolog.New(&log))
				defer submitter.Serve(job, []p2ppeer.ID{"liar"}, nil)()
				_ = submitter.serveTo("liar", encodeOpen(opening{job: job, units: 1, counts: counts}), &pb.Ask{Received: 1}) // the last may be cut off
				if got := log.String(); !strings.Contains(got, `"warn"`) || !strings.Contains(got, "which is impossible") {
					t.Errorf("the log says %s", got)
				}
			})
		})
	}
}

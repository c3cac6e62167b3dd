package filetransfer

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/filetransfer/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/logtest"
	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
)

// TestUnacknowledgedBytesAreBounded: a file arrives over a link beyond the local network. A peer that does
// not report how much has arrived gets only the first bytes.
func TestUnacknowledgedBytesAreBounded(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		submitter, peer := newOffline(t, "origin", zerolog.Nop()), newOffline(t, "peer", zerolog.Nop())
		b := content(1, 3*pieceSize+1)
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
			t.Errorf("the receiver got %d bytes, want 1 to %d", n, firstWindow)
		}
		if took := time.Since(begun); took != stallTimeout {
			t.Errorf("the sender gave up after %v, want %v", took, stallTimeout)
		}
	})
}

// TestFlightsBetweenSites: a peer with a neighbour at its site reports how much arrives from other sites, but
// not how much arrives from the neighbour. A peer without neighbours sends no reports.
func TestFlightsBetweenSites(t *testing.T) {
	for name, tt := range map[string]struct{ near, origin, member bool }{
		"a neighbour": {true, true, false}, "no neighbour": {false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				peer := newOffline(t, "peer", zerolog.Nop())
				w, _ := offer(t, newOffline(t, "origin", zerolog.Nop()), peer, content(1, 2*pieceSize))
				var near []p2ppeer.ID
				if tt.near {
					near = append(near, "member")
				}
				defer peer.Share(job, "origin", []p2ppeer.ID{"member"}, near)()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				heard := make(chan struct{}, 2)
				counts := map[p2ppeer.ID]bool{}
				var mu sync.Mutex
				peer.open = func(_ context.Context, to p2ppeer.ID) (link, error) {
					ours, theirs := net.Pipe()
					go func() { // ends with the peer's end
						var ask pb.Ask
						if err := pbio.NewDelimitedReader(theirs, maxAsk).ReadMsg(&ask); err == nil {
							mu.Lock()
							counts[to] = ask.GetOpen().GetCounts()
							mu.Unlock()
							heard <- struct{}{}
						}
						io.Copy(io.Discard, theirs)
					}()
					return pipeLink{ours}, nil
				}
				ended := make(chan error, 1)
				go func() { ended <- peer.Fetch(ctx, "origin", job, []Want{w}, nil) }()
				<-heard
				<-heard
				cancel()
				<-ended
				if counts["origin"] != tt.origin || counts["member"] != tt.member {
					t.Errorf("acknowledgements were sent to %v, want to the origin: %v, to the member: %v", counts, tt.origin, tt.member)
				}
			})
		})
	}
}

// TestO4ImpossibleAcknowledgementIsLogged: the log names a peer that reports an impossible number of
// bytes.
func TestO4ImpossibleAcknowledgementIsLogged(t *testing.T) {
	for name, counts := range map[string]bool{"more than was sent": true, "reports were not announced": false} {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				var log logtest.Log
				submitter := newOffline(t, "origin", zerolog.New(&log))
				defer submitter.Serve(job, []p2ppeer.ID{"liar"}, nil)()
				_ = submitter.serveTo("liar", encodeOpen(opening{job: job, units: 1, counts: counts}), &pb.Ask{Received: 1}) // the link may be cut first
				if got := log.String(); !strings.Contains(got, `"warn"`) || !strings.Contains(got, "impossible acknowledgement") {
					t.Errorf("log: %s", got)
				}
			})
		})
	}
}

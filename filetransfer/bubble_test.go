package filetransfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/filetransfer/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/logtest"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
)

// A noHost is the host of a peer without a network, for tests in virtual time.
type noHost struct {
	host.Host
	id p2ppeer.ID
}

func (h noHost) ID() p2ppeer.ID                                    { return h.id }
func (noHost) SetStreamHandler(protocol.ID, network.StreamHandler) {}
func (noHost) RemoveStreamHandler(protocol.ID)                     {}

// newOffline starts a peer without a network, for a test in virtual time.
func newOffline(t *testing.T, id p2ppeer.ID, log zerolog.Logger) *Service {
	s := NewService(noHost{id: id}, openStore(t, t.TempDir(), 1<<30), log)
	s.unpacks = false
	t.Cleanup(func() { _ = s.Close() }) // never fails
	return s
}

// An origin is given up only after it has been unreachable for outageTimeout, however often it was tried.
func TestT2FetchWaitsForAnUnreachableOrigin(t *testing.T) {
	for name, tt := range map[string]struct {
		down time.Duration
		err  error
	}{
		"shorter than outageTimeout": {outageTimeout - 5*time.Second, nil},
		"forever":                    {time.Hour, errCut},
	} {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				submitter, peer := newOffline(t, "origin", zerolog.Nop()), newOffline(t, "peer", zerolog.Nop())
				b := content(1, 1000)
				w, _ := offer(t, submitter, peer, b)
				peer.connect(map[p2ppeer.ID]*Service{"origin": submitter})
				begun, tried, open := time.Now(), 0, peer.open
				peer.open = func(ctx context.Context, p p2ppeer.ID) (link, error) {
					if tried++; time.Since(begun) < tt.down {
						return nil, errCut
					}
					return open(ctx, p)
				}
				if err := peer.Fetch(t.Context(), "origin", job, []Want{w}, nil); !errors.Is(err, tt.err) {
					t.Fatalf("got %v after %v, want %v", err, time.Since(begun), tt.err)
				}
				if tried <= maxFailures {
					t.Errorf("the peer made %d attempts", tried)
				}
				if tt.err == nil {
					wantFile(t, peer.store.Path(w.Digest), b)
				} else if took := time.Since(begun); took < outageTimeout || took > 2*outageTimeout {
					t.Errorf("the peer gave up after %v", took)
				}
			})
		})
	}
}

// A peer that reads nothing may be disconnected, so this is not logged as a violation.
func TestPeerThatDoesNotReadIsNotLogged(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		var log logtest.Log
		submitter := newOffline(t, "origin", zerolog.New(&log))
		b := content(1, pieceSize)
		path := filepath.Join(t.TempDir(), "file")
		writeFile(t, path, b)
		w := WantOf(b)
		defer submitter.Serve(job, []p2ppeer.ID{"member"}, map[Digest]Source{w.Digest: {From: path}})()
		ask := []*pb.Ask{encodeOpen(opening{job: job, units: 1}), encodeRequest(request{items: []pieceID{{digest: w.Digest}}})}
		if err := submitter.serveTo("member", ask...); err != nil {
			t.Fatal(err)
		}
		if got := log.String(); strings.Contains(got, `"warn"`) || !strings.Contains(got, errSendTimeout.Error()) {
			t.Errorf("log: %s", got)
		}
	})
}

// A peer that exceeds its window and reads nothing is logged for exceeding its window.
func TestO4PeerThatExceedsItsWindowIsLogged(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		var log logtest.Log
		submitter := newOffline(t, "origin", zerolog.New(&log))
		defer submitter.Serve(job, []p2ppeer.ID{"hog"}, nil)()
		// The first requests may be answered before the answers fill the link.
		asks := slices.Repeat([]*pb.Ask{encodeRequest(request{items: make([]pieceID, 1)})}, 10*maxAhead)
		_ = submitter.serveTo("hog", append([]*pb.Ask{encodeOpen(opening{job: job, units: 1})}, asks...)...) // the last request may be cut off
		if got := log.String(); !strings.Contains(got, `"warn"`) || !strings.Contains(got, "more outstanding requests") {
			t.Errorf("log: %s", got)
		}
	})
}

// connect lets s reach these peers by name.
func (s *Service) connect(to map[p2ppeer.ID]*Service) {
	s.open = func(_ context.Context, p p2ppeer.ID) (link, error) {
		ours, theirs := net.Pipe()
		go to[p].serveLink(pipeLink{theirs}, s.host.ID()) // ends with Close at the latest
		return pipeLink{ours}, nil
	}
}

// Parts from members wait for room in memory; parts from the origin do not.
func TestO4PartsOfMembersWaitForMemory(t *testing.T) {
	for name, held := range map[string]int{"room for one part": 0, "no room": 1} {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				submitter, member := newOffline(t, "origin", zerolog.Nop()), newOffline(t, "member", zerolog.Nop())
				peer := newOffline(t, "peer", zerolog.Nop())
				b := content(1, 6*pieceSize)
				w, path := offer(t, submitter, member, b)
				defer submitter.Serve(job, []p2ppeer.ID{"peer"}, map[Digest]Source{w.Digest: {From: path}})()
				all := map[p2ppeer.ID]*Service{"origin": submitter, "member": member, "peer": peer}
				put(t, member.store, "earlier job", b)
				for _, s := range []*Service{member, peer} {
					s.connect(all)
					defer s.Share(job, "origin", []p2ppeer.ID{"member", "peer"}, nil)()
				}
				begun, open := time.Now(), peer.open
				peer.open = func(ctx context.Context, p p2ppeer.ID) (link, error) {
					if p == "origin" && time.Since(begun) < outageTimeout/2 { // members come first
						return nil, errCut
					}
					return open(ctx, p)
				}
				peer.room = make(chan struct{}, 1)
				for range held {
					peer.room <- struct{}{}
				}
				for _, s := range []*Service{member, peer} {
					if err := s.Fetch(t.Context(), "origin", job, []Want{w}, nil); err != nil {
						t.Fatal(err)
					}
				}
				wantFile(t, peer.store.Path(w.Digest), b)
				if got := len(peer.room); got != held {
					t.Errorf("%d parts fit into memory at the end, want %d", got, held)
				}
				if got, want := submitter.Stats().BytesSent, int64(held)*w.Size; got != want {
					t.Errorf("the origin has sent %d bytes, want %d", got, want)
				}
			})
		})
	}
}

// T1: a source that sends garbage is logged and not asked again. A link that is cut within a message is
// retried.
func TestT1InvalidSourceIsLoggedAndExcluded(t *testing.T) {
	skip.Long(t)
	tests := map[string]struct {
		says  []byte
		wrong bool
	}{
		"too long":      {[]byte{0xff, 0xff, 0xff, 0x7f}, true},
		"no message":    {[]byte{3, 0xff, 0xff, 0xff}, true},
		"no body":       {says(&pb.Answer{}), true},
		"too large":     {says(&pb.Answer{Body: &pb.Answer_Part{Part: &pb.Part{Length: 2 * pieceSize}}}), true},
		"packed larger": {says(&pb.Answer{Body: &pb.Answer_Part{Part: &pb.Part{Length: 3, Packed: 3}}}), true},
		"unit 9":        {says(&pb.Answer{Body: &pb.Answer_Have{Have: &pb.Have{More: []uint32{9}}}}), true},
		"unknown units": {says(&pb.Answer{Body: &pb.Answer_Taken{Taken: &pb.Taken{Units: []byte{0xff}}}}), true},
		"truncated":     {[]byte{3, 0xff}, false},
		"empty":         {nil, false},
	}
	for name, tt := range tests {
		for _, source := range []p2ppeer.ID{"origin", "member"} {
			t.Run(name+" from the "+string(source), func(t *testing.T) {
				virtualtime.Test(t, func(t *testing.T) {
					var log logtest.Log
					submitter, peer := newOffline(t, "origin", zerolog.Nop()), newOffline(t, "peer", zerolog.New(&log))
					w, _ := offer(t, submitter, peer, content(1, 2*pieceSize))
					defer peer.Share(job, "origin", []p2ppeer.ID{"member"}, nil)()
					peer.connect(map[p2ppeer.ID]*Service{"origin": submitter})
					tried, open := 0, peer.open
					peer.open = func(ctx context.Context, p p2ppeer.ID) (link, error) {
						switch {
						case p == source:
							tried++
							return talk(tt.says), nil
						case p == "member":
							return nil, errCut
						case source == "member" && !strings.Contains(log.String(), "dropped as a source"):
							return nil, errCut // the member comes first
						}
						return open(ctx, p)
					}
					err := peer.Fetch(t.Context(), "origin", job, []Want{w}, nil)
					if (err != nil) != (source == "origin") || (tried == 1) != tt.wrong {
						t.Errorf("%d attempts, got %v", tried, err)
					}
					named := errors.As(err, new(wrongError))
					if source == "member" {
						named = strings.Contains(log.String(), `"warn"`) && strings.Contains(log.String(), source.String())
					}
					if named != tt.wrong {
						t.Errorf("got %v, log: %s", err, log.String())
					}
				})
			})
		}
	}
}

// says encodes an answer.
func says(a *pb.Answer) []byte {
	var b bytes.Buffer
	_ = pbio.NewDelimitedWriter(&b).WriteMsg(a) // a buffer never fails
	return b.Bytes()
}

// talk returns a link whose other end sends b, whatever it receives, and closes.
func talk(b []byte) link {
	ours, theirs := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, theirs) }() // ends with either end
	go func() {                                        // ends when b is read, or ours is closed
		_, _ = theirs.Write(b)
		_ = theirs.Close()
	}()
	return pipeLink{ours}
}

// serveTo serves a link whose other end sends the given messages and reads nothing. It returns the error of
// sending.
func (s *Service) serveTo(remote p2ppeer.ID, says ...*pb.Ask) error {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	done := make(chan struct{})
	go func() { // ends when the other end stops reading
		defer close(done)
		s.serveLink(pipeLink{ours}, remote)
	}()
	err := pbWriter(says...)(theirs)
	<-done
	return err
}

package filetransfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/filetransfer/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/logtest"
	"github.com/p2pmpi/p2pmpi/internal/loopback"
	"github.com/p2pmpi/p2pmpi/internal/skip"
)

const job = "job"

// newService starts a peer on loopback with an empty store.
func newService(t testing.TB, limit int64) *Service {
	return newServiceLogging(t, limit, zerolog.Nop())
}

func newServiceLogging(t testing.TB, limit int64, log zerolog.Logger) *Service {
	t.Helper()
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.Transport(tcp.NewTCPTransport), libp2p.DisableRelay())
	if err != nil {
		t.Fatal(err)
	}
	own := loopback.Wrap(h)
	s := NewService(own, openStore(t, t.TempDir(), limit), log)
	s.backoff, s.cut = time.Millisecond, 0
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), own.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newPair starts a submitter and a peer that knows its address.
func newPair(t testing.TB) (submitter, peer *Service) {
	t.Helper()
	submitter, peer = newService(t, 1<<30), newService(t, 1<<30)
	peer.host.Peerstore().AddAddrs(submitter.host.ID(), submitter.host.Addrs(), peerstore.PermanentAddrTTL)
	return submitter, peer
}

// offer serves one content to the peer from a file of its own.
func offer(t testing.TB, from, to *Service, b []byte) (w Want, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	writeFile(t, path, b)
	w = WantOf(b)
	w.Name = "file"
	t.Cleanup(from.Serve(job, []p2ppeer.ID{to.host.ID()}, map[Digest]Source{w.Digest: {From: path}}))
	return w, path
}

// A cutLink breaks, in both directions, after budget bytes have been read.
type cutLink struct {
	link
	budget int
}

var errCut = errors.New("cut by the test")

func (c *cutLink) Read(b []byte) (int, error) {
	if c.budget == 0 {
		_ = c.Reset()
		return 0, errCut
	}
	n, err := c.link.Read(b[:min(len(b), c.budget)])
	c.budget -= n
	return n, err
}

// cutLinks breaks the first streams that s opens after the given numbers of bytes.
func cutLinks(s *Service, budgets ...int) {
	s.open = func(ctx context.Context, to p2ppeer.ID) (link, error) {
		l, err := s.openStream(ctx, to)
		if err != nil || len(budgets) == 0 {
			return l, err
		}
		l = &cutLink{link: l, budget: budgets[0]}
		budgets = budgets[1:]
		return l, nil
	}
}

func TestT1ReceivedContentMatchesSubmitted(t *testing.T) {
	skip.Long(t)
	submitter, peer := newPair(t)
	src := t.TempDir()
	big := content(1, 3*pieceSize+17)
	writeFile(t, filepath.Join(src, "prog"), big)
	files := append(tree(t, filepath.Join(src, "in"), 4*maxBatch+10), Source{Path: "prog", From: filepath.Join(src, "prog")})
	m, err := Build(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	at := Locate(m, files)
	name := put(t, submitter.store, job, enc)
	at[name] = Source{From: submitter.store.Path(name)}
	defer submitter.Serve(job, []p2ppeer.ID{peer.host.ID()}, at)()

	got, err := peer.FetchManifest(t.Context(), submitter.host.ID(), job, Want{Digest: name, Size: int64(len(enc))})
	if err != nil {
		t.Fatal(err)
	}
	var seen int64
	if err := peer.Fetch(t.Context(), submitter.host.ID(), job, got.Wants(), func(n int64) { seen += n }); err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, w := range m.Wants() {
		size += w.Size
	}
	if seen != size || peer.Stats().BytesReceived != seen+int64(len(enc)) {
		t.Errorf("the progress is %d of %d bytes, the statistics %+v", seen, size, peer.Stats())
	}
	dir := t.TempDir()
	if err := peer.store.Materialize(t.Context(), got, dir); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		want, _ := os.ReadFile(f.From)
		wantFile(t, filepath.Join(dir, f.Path), want)
	}
	wantBytes(t, peer.store)

	before := submitter.Stats() // no content is sent twice to the same peer
	if err := peer.Fetch(t.Context(), submitter.host.ID(), "next job", got.Wants(), nil); err != nil {
		t.Fatal(err)
	}
	if after := submitter.Stats(); after != before {
		t.Errorf("cached content was sent again: %+v, then %+v", before, after)
	}
}

func TestT1WrongBytesErrorNamesPeerAndContent(t *testing.T) {
	submitter, peer := newPair(t)
	good := content(1, 2*pieceSize)
	bad := bytes.Clone(good)
	bad[pieceSize] ^= 1 // the second piece
	_, path := offer(t, submitter, peer, bad)
	w := WantOf(good)
	w.Name = "prog"
	defer submitter.Serve(job, []p2ppeer.ID{peer.host.ID()}, map[Digest]Source{w.Digest: {From: path}})()
	err := peer.Fetch(t.Context(), submitter.host.ID(), job, []Want{w}, nil)
	if err == nil {
		t.Fatal("wrong bytes were accepted")
	}
	for _, part := range []string{submitter.host.ID().String(), w.Digest.String(), "prog"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not contain %s", err, part)
		}
	}
	if peer.store.Has(w.Digest) || peer.store.Bytes() != pieceSize { // the correct piece stays
		t.Errorf("the wrong content is stored: %v, with %d bytes in the store", peer.store.Has(w.Digest), peer.store.Bytes())
	}
	wantBytes(t, peer.store)
}

func TestT1ChangedOrRemovedFileIsRefused(t *testing.T) {
	tests := map[string]struct {
		change func(path string) error
		want   string
	}{
		"longer":  {func(p string) error { return os.WriteFile(p, content(2, 150), 0o600) }, "has changed"},
		"touched": {func(p string) error { return os.Chtimes(p, time.Unix(1, 0), time.Unix(1, 0)) }, "has changed"},
		"removed": {os.Remove, "cannot be read"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			submitter, peer := newPair(t)
			w, path := offer(t, submitter, peer, content(1, 100))
			if err := tt.change(path); err != nil {
				t.Fatal(err)
			}
			err := peer.Fetch(t.Context(), submitter.host.ID(), job, []Want{w}, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error that contains %q", err, tt.want)
			}
		})
	}
}

func TestT2BrokenStreamResumesWithinOneFetch(t *testing.T) {
	submitter, peer := newPair(t)
	b := content(1, 20*pieceSize)
	w, _ := offer(t, submitter, peer, b)
	cutLinks(peer, 3*pieceSize+100, 0, 10, 7*pieceSize)
	if err := peer.Fetch(t.Context(), submitter.host.ID(), job, []Want{w}, nil); err != nil {
		t.Fatal(err)
	}
	wantFile(t, peer.store.Path(w.Digest), b)
	if got := peer.Stats().BytesReceived; got != w.Size {
		t.Errorf("the peer received %d bytes for a content of %d", got, w.Size)
	}
}

func TestT2NextProcessFetchesOnlyTheRest(t *testing.T) {
	submitter, peer := newPair(t)
	b := content(1, 20*pieceSize)
	w, _ := offer(t, submitter, peer, b)
	cutLinks(peer, 12*pieceSize, 0, 0, 0, 0, 0, 0)
	if err := peer.Fetch(t.Context(), submitter.host.ID(), job, []Want{w}, nil); !errors.Is(err, errCut) {
		t.Fatalf("Fetch over cut links returned %v", err)
	}
	wantBytes(t, peer.store)
	there := peer.store.Bytes()
	if there < 10*pieceSize || there >= w.Size {
		t.Fatalf("%d bytes are still stored", there)
	}
	next := newService(t, 1<<30) // another process on the same cache
	next.store = openStore(t, string(peer.store.dir), 1<<30)
	next.host.Peerstore().AddAddrs(submitter.host.ID(), submitter.host.Addrs(), peerstore.PermanentAddrTTL)
	sv := submitter.Serve(job, []p2ppeer.ID{next.host.ID()}, submitter.servedFiles())
	defer sv()
	before := submitter.Stats().BytesSent
	if err := next.Fetch(t.Context(), submitter.host.ID(), job, []Want{w}, nil); err != nil {
		t.Fatal(err)
	}
	if got := submitter.Stats().BytesSent - before; got != w.Size-there {
		t.Errorf("the submitter sent %d bytes, %d were missing", got, w.Size-there)
	}
	wantFile(t, next.store.Path(w.Digest), b)
}

// servedFiles returns the offered files, to offer them to another peer.
func (s *Service) servedFiles() map[Digest]Source {
	s.servings.mu.Lock()
	defer s.servings.mu.Unlock()
	files := map[Digest]Source{}
	for _, svs := range s.servings.ofJob {
		for _, sv := range svs {
			for d, f := range sv.files {
				files[d] = f.from
			}
		}
	}
	return files
}

// Only the pieces that are corrupted on disk are fetched again.
func TestT2CorruptedPiecesAreFetchedAgain(t *testing.T) {
	submitter, peer := newPair(t)
	b := content(1, 5*pieceSize+100)
	w, _ := offer(t, submitter, peer, b)
	there := bytes.Clone(b[:4*pieceSize+10])
	there[2*pieceSize+5] ^= 1
	writeFile(t, peer.store.dir.partial(w.Digest), there)
	peer.store = openStore(t, string(peer.store.dir), 1<<30)
	if err := peer.Fetch(t.Context(), submitter.host.ID(), job, []Want{w}, nil); err != nil {
		t.Fatal(err)
	}
	wantFile(t, peer.store.Path(w.Digest), b)
	if got := peer.Stats().BytesReceived; got != 2*pieceSize+100 {
		t.Errorf("the peer received %d bytes, want the wrong piece and the missing %d", got, pieceSize+100)
	}
}

// A pipeLink is one end of a net.Pipe.
type pipeLink struct{ net.Conn }

func (p pipeLink) Reset() error { return p.Close() }

func TestT2StalledStreamIsReplaced(t *testing.T) {
	submitter, peer := newPair(t)
	w, _ := offer(t, submitter, peer, content(1, 1000))
	peer.stall = 50 * time.Millisecond
	stalled := false
	silent := make(chan net.Conn, 1)
	peer.open = func(ctx context.Context, to p2ppeer.ID) (link, error) {
		if stalled {
			return peer.openStream(ctx, to)
		}
		stalled = true
		ours, theirs := net.Pipe()
		go func() { // ends when the fetch resets its end
			buf := make([]byte, 1024)
			for {
				if _, err := theirs.Read(buf); err != nil {
					silent <- theirs
					return
				}
			}
		}()
		return pipeLink{ours}, nil
	}
	if err := peer.Fetch(t.Context(), submitter.host.ID(), job, []Want{w}, nil); err != nil {
		t.Fatal(err)
	}
	_ = (<-silent).Close()
}

func TestT4FetchThatCannotFitIsRefused(t *testing.T) {
	submitter, peer := newPair(t)
	w, _ := offer(t, submitter, peer, content(1, 1000))
	peer.store = openStore(t, t.TempDir(), 999)
	if err := peer.Fetch(t.Context(), submitter.host.ID(), job, []Want{w}, nil); !errors.Is(err, errFull) {
		t.Errorf("Fetch into a store that is too small returned %v", err)
	}
}

func TestServeAnswersOnlyAllowedPeers(t *testing.T) {
	submitter, peer := newPair(t)
	w, path := offer(t, submitter, peer, content(1, 100))
	secret := Want{Digest: DigestOf([]byte("secret")), Size: 6}
	defer submitter.Serve(job, []p2ppeer.ID{submitter.host.ID()}, map[Digest]Source{secret.Digest: {From: path}})()
	stop := submitter.Serve("over", []p2ppeer.ID{peer.host.ID()}, map[Digest]Source{w.Digest: {From: path}})
	stop()
	stop() // calling it twice is harmless
	tests := []struct {
		name string
		job  string
		want Want
	}{
		{"another job", "other", w},
		{"a job that is over", "over", w},
		{"content for another peer", job, secret},
		{"content that no peer serves", job, Want{Digest: Digest{1}, Size: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := peer.Fetch(t.Context(), submitter.host.ID(), tt.job, []Want{tt.want}, nil)
			if err == nil || !strings.Contains(err.Error(), "does not serve") {
				t.Errorf("Fetch of content that is not served returned %v", err)
			}
		})
	}
	if err := peer.Fetch(t.Context(), submitter.host.ID(), job, []Want{{Digest: w.Digest, Size: 99}}, nil); err == nil {
		t.Error("a content longer than wanted was accepted")
	}
}

func TestPeerFetchesFromItself(t *testing.T) {
	s := newService(t, 1<<30)
	b := content(1, 2*pieceSize)
	w, _ := offer(t, s, s, b[:pieceSize+1])
	if err := s.Fetch(t.Context(), s.host.ID(), job, []Want{w}, nil); err != nil {
		t.Fatal(err)
	}
	wantFile(t, s.store.Path(w.Digest), b[:pieceSize+1])
}

func TestConcurrentFetchesTransferOnce(t *testing.T) {
	submitter, peer := newPair(t)
	w, _ := offer(t, submitter, peer, content(1, 10*pieceSize))
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if err := peer.Fetch(t.Context(), submitter.host.ID(), job, []Want{w}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := submitter.Stats(); got.BytesSent != w.Size || got.FilesSent != 1 {
		t.Errorf("the submitter sent %+v, want the content once", got)
	}
}

// Whatever a peer sends, the link and Close terminate.
func TestO4InvalidRequestsEndTheLink(t *testing.T) {
	open := encodeOpen(opening{job: job, units: 1})
	full := encodeRequest(request{items: make([]pieceID, maxBatch)})
	tests := map[string]func(io.Writer) error{
		"garbage":        func(w io.Writer) error { _, err := w.Write(content(1, 100)); return err },
		"huge message":   func(w io.Writer) error { _, err := w.Write([]byte{0xff, 0xff, 0xff, 0x7f}); return err },
		"no opening":     pbWriter(full),
		"long job":       pbWriter(encodeOpen(opening{job: strings.Repeat("j", maxJob+1), units: 1})),
		"no units":       pbWriter(encodeOpen(opening{job: job})),
		"too many units": pbWriter(encodeOpen(opening{job: job, units: maxUnits + 1})),
		"opened twice":   pbWriter(open, open),
		"empty request":  pbWriter(open, &pb.Ask{}),
		"too many items": pbWriter(open, encodeRequest(request{items: make([]pieceID, maxBatch+1)})),
		"no items":       pbWriter(open, encodeRequest(request{})),
		"another unit":   pbWriter(open, encodeRequest(request{unit: 1, items: make([]pieceID, 1)})),
		"endless piece":  pbWriter(open, encodeRequest(request{items: []pieceID{{piece: maxFileBytes/pieceSize + 1}}})),
		"too many ahead": pbWriter(append([]*pb.Ask{open}, slices.Repeat([]*pb.Ask{full}, 1<<14)...)...),
		"a long silence": func(io.Writer) error { return nil },
	}
	for name, write := range tests {
		t.Run(name, func(t *testing.T) {
			var log logtest.Log
			s := newServiceLogging(t, 1<<20, zerolog.New(&log))
			s.stall = 200 * time.Millisecond
			defer s.Serve(job, []p2ppeer.ID{s.host.ID()}, nil)()
			l, err := s.openStream(t.Context(), s.host.ID())
			if err != nil {
				t.Fatal(err)
			}
			_ = write(l) // the service may have reset the stream before the write ends
			if _, err := io.Copy(io.Discard, l); !errors.Is(err, network.ErrReset) {
				t.Errorf("got %v, want a reset", err)
			}
			if err := s.Close(); err != nil { // the link has ended
				t.Fatal(err)
			}
			// All requests may have been answered as fast as they arrived.
			if got := log.String(); name != "too many ahead" && (!strings.Contains(got, `"warn"`) || !strings.Contains(got, s.host.ID().String())) {
				t.Errorf("log: %s", got)
			}
		})
	}
}

func pbWriter(msgs ...*pb.Ask) func(io.Writer) error {
	return func(w io.Writer) error {
		for _, msg := range msgs {
			if err := pbio.NewDelimitedWriter(w).WriteMsg(msg); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestCloseEndsServedLinks(t *testing.T) {
	submitter, peer := newPair(t)
	w, _ := offer(t, submitter, peer, content(1, 100))
	l, err := peer.openStream(t.Context(), submitter.host.ID())
	if err != nil {
		t.Fatal(err)
	}
	ask := pbWriter(encodeOpen(opening{job: job, units: 1}), encodeRequest(request{items: []pieceID{{digest: w.Digest}}}))
	if err := ask(l); err != nil {
		t.Fatal(err)
	}
	if _, err := newAnswerReader(l, 1).next(); err != nil { // now the link is being served
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- submitter.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(stallTimeout / 2):
		t.Error("Close waits for a peer that holds its stream open")
	}
	_ = l.Reset()
}

// A heldLink delivers nothing more once held is done; its reader blocks until it is reset.
type heldLink struct {
	link
	held, reset context.Context
	end         context.CancelFunc // called by Reset
}

func (l heldLink) Read(b []byte) (int, error) {
	if l.held.Err() == nil {
		return l.link.Read(b)
	}
	<-l.reset.Done()
	return 0, net.ErrClosed
}

func (l heldLink) Reset() error {
	l.end()
	return l.link.Reset()
}

// TestFetchEndsWithItsContextAndWithClose: the rest of the contents never arrives, so that the fetch
// cannot be complete before its end is noticed.
func TestFetchEndsWithItsContextAndWithClose(t *testing.T) {
	for _, end := range []string{"context", "close"} {
		t.Run(end, func(t *testing.T) {
			submitter, peer := newPair(t)
			w, _ := offer(t, submitter, peer, content(1, 4*maxParts*pieceSize))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			held, hold := context.WithCancel(context.Background())
			peer.open = func(ctx context.Context, to p2ppeer.ID) (link, error) {
				l, err := peer.openStream(ctx, to)
				reset, end := context.WithCancel(context.Background())
				return heldLink{l, held, reset, end}, err
			}
			var once sync.Once
			err := peer.Fetch(ctx, submitter.host.ID(), job, []Want{w}, func(int64) {
				once.Do(func() {
					hold()
					if end == "context" {
						cancel()
					} else {
						go peer.Close() // waits for this Fetch; the cleanup waits for it
					}
				})
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("Fetch that was ended returned %v, want context.Canceled", err)
			}
		})
	}
}

func TestFetchFromAnUnreachablePeerFails(t *testing.T) {
	submitter, peer := newPair(t)
	w, _ := offer(t, submitter, peer, content(1, 10))
	if err := errors.Join(submitter.Close(), submitter.host.Close()); err != nil {
		t.Fatal(err)
	}
	err := peer.Fetch(t.Context(), submitter.host.ID(), job, []Want{w}, nil)
	if err == nil || !strings.Contains(err.Error(), "gave up") {
		t.Errorf("Fetch from an unreachable peer returned %v", err)
	}
}

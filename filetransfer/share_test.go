package filetransfer

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/logtest"
	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// A crowd is a submitter and peers that share fetched contents.
type crowd struct {
	submitter *Service
	peers     []*Service
	ids       []p2ppeer.ID
	log       logtest.Log // log of the peers
}

func newCrowd(t testing.TB, n int) *crowd {
	t.Helper()
	c := &crowd{submitter: newService(t, 1<<30)}
	for range n {
		p := newServiceLogging(t, 1<<30, zerolog.New(&c.log))
		p.backoff = 20 * time.Millisecond
		c.peers = append(c.peers, p)
		c.ids = append(c.ids, p.host.ID())
	}
	for i, p := range c.peers {
		for _, o := range append(c.peers, c.submitter) {
			p.host.Peerstore().AddAddrs(o.host.ID(), o.host.Addrs(), peerstore.PermanentAddrTTL)
		}
		var members []p2ppeer.ID
		for _, j := range Neighbours(i, n) {
			members = append(members, c.ids[j])
		}
		t.Cleanup(p.Share(job, c.submitter.host.ID(), members, nil))
	}
	return c
}

// fetch makes all peers fetch the list.
func (c *crowd) fetch(t testing.TB, list []Want) {
	t.Helper()
	var wg sync.WaitGroup
	for i, p := range c.peers {
		wg.Go(func() {
			if err := p.Fetch(t.Context(), c.submitter.host.ID(), job, list, nil); err != nil {
				t.Errorf("peer %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

// copies returns how many times the submitter has sent the list.
func (c *crowd) copies(list []Want) float64 {
	var size int64
	for _, w := range list {
		size += w.Size
	}
	return float64(c.submitter.Stats().BytesSent) / float64(size)
}

// offerTree serves a large file and many small ones to all.
func (c *crowd) offerTree(t testing.TB, large int) (m Manifest, files []Source) {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir+"/large", content(1, large))
	files = append(tree(t, dir, 500), Source{Path: "large", From: dir + "/large"})
	m, err := Build(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.submitter.Serve(job, c.ids, Locate(m, files)))
	return m, files
}

func TestSubmitterSendsEachContentAboutOnce(t *testing.T) {
	skip.Long(t)
	c := newCrowd(t, 6)
	m, files := c.offerTree(t, 12*pieceSize+5)
	c.fetch(t, m.Wants())
	for _, p := range c.peers {
		for _, f := range files {
			if f.Path == "large" {
				wantFile(t, p.store.Path(m[len(m)-1].Digest), content(1, 12*pieceSize+5))
			}
		}
		for _, w := range m.Wants() {
			if !p.store.Has(w.Digest) {
				t.Fatalf("%s is missing", w)
			}
		}
		wantBytes(t, p.store)
	}
	got := c.copies(m.Wants())
	t.Logf("the submitter has sent %.2f copies to %d peers", got, len(c.peers))
	if got > 1.6 {
		t.Errorf("the submitter sent %.2f copies, want at most 1.6", got)
	}
}

// Contents that a peer has in its cache need not come from the submitter.
func TestPeersServeCachedContents(t *testing.T) {
	c := newCrowd(t, 4)
	b := content(1, 5*pieceSize)
	put(t, c.peers[2].store, "earlier job", b)
	w := WantOf(b)
	path := t.TempDir() + "/f"
	writeFile(t, path, b)
	defer c.submitter.Serve(job, c.ids, map[Digest]Source{w.Digest: {From: path}})()
	c.fetchOne(t, 2, []Want{w})
	if got := c.submitter.Stats().BytesSent; got != 0 {
		t.Fatalf("the submitter sent %d bytes of cached content", got)
	}
	c.fetch(t, []Want{w})
	if c.peers[2].Stats().BytesSent == 0 || c.copies([]Want{w}) > 1.6 {
		t.Errorf("the submitter has sent %.2f copies, the peer with the content %d bytes", c.copies([]Want{w}), c.peers[2].Stats().BytesSent)
	}
}

// T1: a member that sends wrong bytes is logged and not asked again. All contents are fetched from others.
func TestT1LyingMemberIsLoggedAndExcluded(t *testing.T) {
	skip.Long(t)
	c := newCrowd(t, 3)
	m, _ := c.offerTree(t, 20*pieceSize)
	liar := c.peers[0]
	c.fetchOne(t, 0, m.Wants())
	large := m[len(m)-1]
	forged := bytes.Repeat([]byte{7}, int(large.Size))
	writeFile(t, liar.store.Path(large.Digest), forged)

	honest := c.peers[1]
	// The fetch waits until only the liar's units are offered.
	slow := make(chan struct{})
	honest.open = func(ctx context.Context, to p2ppeer.ID) (link, error) {
		if to == c.submitter.host.ID() {
			select {
			case <-slow:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return honest.openStream(ctx, to)
	}
	done := make(chan error, 1)
	go func() { done <- honest.Fetch(t.Context(), c.submitter.host.ID(), job, m.Wants(), nil) }()
	for !strings.Contains(c.log.String(), liar.host.ID().String()) {
		select {
		case err := <-done:
			t.Fatalf("fetch ended with %v, and the log does not name %s: %s", err, liar.host.ID(), c.log.String())
		case <-time.After(time.Millisecond):
		}
	}
	close(slow)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	wantFile(t, honest.store.Path(large.Digest), content(1, 20*pieceSize))
	if got := c.log.String(); !strings.Contains(got, `"warn"`) || !strings.Contains(got, large.Digest.String()) {
		t.Errorf("log: %s", got)
	}
	if got := honest.Stats().BytesReceived - sizeOf(m); got > (maxParts+2)*pieceSize {
		t.Errorf("false pieces cost the honest peer %d bytes", got)
	}
}

// Collected files come only from the peer that has them, even if a member has the same contents, and are
// not offered to members.
func TestCollectionDoesNotUseTheSwarm(t *testing.T) {
	c := newCrowd(t, 3)
	collector, ran, member := c.peers[0], c.peers[1], c.peers[2]
	b := content(1, 3*pieceSize)
	path := t.TempDir() + "/output"
	writeFile(t, path, b)
	list := []Want{WantOf(b)}
	files := map[Digest]Source{list[0].Digest: {From: path}}
	defer c.submitter.Serve(job, c.ids, files)()
	c.fetchOne(t, 2, list) // as staged, and shared
	defer ran.Serve(job, c.ids[:1], files)()
	if err := collector.Fetch(t.Context(), c.ids[1], job, list, nil); err != nil {
		t.Fatal(err)
	}
	if sent := member.Stats().BytesSent; sent > 0 || ran.Stats().BytesSent != list[0].Size {
		t.Errorf("the peer has sent %d bytes, its member %d", ran.Stats().BytesSent, sent)
	}
	if sh, _, _ := collector.swarms.of(job).find(listID(list)); sh != nil {
		t.Error("collected content is shared")
	}
}

// A gatedLink reads a number of bytes, and the rest when the gate is open.
type gatedLink struct {
	link
	budget int
	gate   <-chan struct{}
	ended  chan struct{} // closed by Reset or Close
	once   sync.Once
}

func (g *gatedLink) Read(b []byte) (int, error) {
	if g.budget == 0 {
		select {
		case <-g.gate:
			return g.link.Read(b)
		case <-g.ended:
			return 0, errCut
		}
	}
	n, err := g.link.Read(b[:min(len(b), g.budget)])
	g.budget -= n
	return n, err
}

func (g *gatedLink) Reset() error {
	g.once.Do(func() { close(g.ended) })
	return g.link.Reset()
}

func (g *gatedLink) Close() error {
	g.once.Do(func() { close(g.ended) })
	return g.link.Close()
}

// T2: an origin that is unreachable for longer than allowed does not end a fetch while members have the
// missing units.
func TestT2MembersReplaceAnUnreachableOrigin(t *testing.T) {
	c := newCrowd(t, 2)
	b := content(1, 3*pieceSize)
	w := WantOf(b)
	put(t, c.peers[0].store, "earlier job", b)
	c.fetchOne(t, 0, []Want{w}) // which shares it
	p := c.peers[1]
	p.backoff = time.Millisecond
	tried, here, gate := 0, make(chan struct{}), make(chan struct{})
	p.open = func(ctx context.Context, to p2ppeer.ID) (link, error) {
		if to != c.submitter.host.ID() {
			l, err := p.openStream(ctx, to)
			return &gatedLink{link: l, budget: pieceSize + 1<<16, gate: gate, ended: make(chan struct{})}, err
		}
		select { // the member has reported its units
		case <-here:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if tried++; tried == 2*maxFailures {
			close(gate)
		}
		return nil, errCut
	}
	begun := sync.OnceFunc(func() { close(here) })
	if err := p.Fetch(t.Context(), c.submitter.host.ID(), job, []Want{w}, func(int64) { begun() }); err != nil {
		t.Fatal(err)
	}
	wantFile(t, p.store.Path(w.Digest), b)
	if tried < 2*maxFailures {
		t.Errorf("%d attempts to reach the origin", tried)
	}
}

// TestUnsharedContentIsNotSent: after stop, no units are sent, even over existing links. The member fetches
// the rest elsewhere.
func TestUnsharedContentIsNotSent(t *testing.T) {
	c := newCrowd(t, 2)
	sharer, p := c.peers[0], c.peers[1]
	stop := sharer.Share(job, c.submitter.host.ID(), c.ids[1:], nil)
	const many = 4 * (memberWindow + 1)
	b := content(1, many*pieceSize)
	w := WantOf(b)
	put(t, sharer.store, "earlier job", b)
	c.fetchOne(t, 0, []Want{w}) // which shares it
	path := t.TempDir() + "/f"
	writeFile(t, path, b)
	defer c.submitter.Serve(job, c.ids, map[Digest]Source{w.Digest: {From: path}})()
	stopped, ended := make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(ended) })
	p.open = func(ctx context.Context, to p2ppeer.ID) (link, error) {
		if to == c.submitter.host.ID() {
			select { // the link to the member has ended
			case <-ended:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return p.openStream(ctx, to)
		}
		l, err := p.openStream(ctx, to)
		if err != nil {
			end()
			return nil, err
		}
		g := &gatedLink{link: l, budget: pieceSize + 1<<16, gate: stopped, ended: make(chan struct{})}
		go func() { // ends with the link
			<-g.ended
			end()
		}()
		return g, nil
	}
	begun := sync.OnceFunc(func() { stop(); close(stopped) })
	if err := p.Fetch(t.Context(), c.submitter.host.ID(), job, []Want{w}, func(int64) { begun() }); err != nil {
		t.Fatal(err)
	}
	wantFile(t, p.store.Path(w.Digest), b)
	if sent := sharer.Stats().BytesSent; sent > (memberWindow+1)*pieceSize {
		t.Errorf("the peer has sent %d pieces of %d", sent/pieceSize, many)
	}
}

func sizeOf(m Manifest) (size int64) {
	for _, w := range m.Wants() {
		size += w.Size
	}
	return size
}

func (c *crowd) fetchOne(t testing.TB, i int, list []Want) {
	t.Helper()
	if err := c.peers[i].Fetch(t.Context(), c.submitter.host.ID(), job, list, nil); err != nil {
		t.Fatal(err)
	}
}

// Members get only the job's own contents, and other peers get nothing.
func TestMembersGetOnlySharedContents(t *testing.T) {
	c := newCrowd(t, 3)
	m, _ := c.offerTree(t, 2*pieceSize)
	secret := content(9, 1000)
	d := put(t, c.peers[0].store, "another job", secret)
	c.fetchOne(t, 0, m.Wants())
	id, units := listID(m.Wants()), len(unitsOf(m.Wants()))
	stranger := newService(t, 1<<20)
	stranger.host.Peerstore().AddAddrs(c.ids[0], c.peers[0].host.Addrs(), peerstore.PermanentAddrTTL)
	tests := map[string]struct {
		from *Service
		item pieceID
		unit int
		ok   bool
	}{
		"a member":                     {c.peers[1], pieceID{m[len(m)-1].Digest, 1}, units - 1, true},
		"a member, another unit":       {c.peers[1], pieceID{m[len(m)-1].Digest, 1}, 0, false},
		"a member, another piece":      {c.peers[1], pieceID{m[len(m)-1].Digest, 0}, units - 1, false},
		"a member, another job's file": {c.peers[1], pieceID{d, 0}, 0, false},
		"a stranger":                   {stranger, pieceID{m[0].Digest, 0}, 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l, err := tt.from.openStream(t.Context(), c.ids[0])
			if err != nil {
				t.Fatal(err)
			}
			defer l.Reset()
			ask := pbWriter(encodeOpen(opening{job: job, list: id, units: units}),
				encodeRequest(request{unit: tt.unit, items: []pieceID{tt.item}}))
			if err := ask(l); err != nil {
				t.Fatal(err)
			}
			r := newAnswerReader(l, units)
			for {
				a, err := r.next()
				if a.have != nil {
					continue
				}
				if refused := errors.As(err, new(refusedError)); refused == tt.ok || !refused && err != nil {
					t.Errorf("got %+v, %v; want an answer: %v", a, err, tt.ok)
				}
				return
			}
		})
	}
}

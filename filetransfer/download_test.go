package filetransfer

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A site serves one content and counts the requests.
type site struct {
	*httptest.Server
	mu       sync.Mutex
	content  []byte
	etag     string
	cut      int // number of bytes after which one answer is cut
	ranges   []string
	unasked  int // answers with status 304
	complete int // answers with the whole content
}

func newSite(t *testing.T, content []byte) *site {
	s := &site{content: content, etag: `"1"`}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rng := r.Header.Get("Range"); rng != "" {
		s.ranges = append(s.ranges, rng)
	} else if s.etag != "" && r.Header.Get("If-None-Match") == s.etag {
		s.unasked++
	} else {
		s.complete++
	}
	if s.etag != "" {
		w.Header().Set("ETag", s.etag)
	}
	if n := s.cut; n > 0 {
		s.cut = 0
		w.Header().Set("Content-Length", fmt.Sprint(len(s.content)))
		w.Write(s.content[:n])
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.content))
}

func (s *site) download(t *testing.T, store *Store, digest string) (Digest, error) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	return store.Download(t.Context(), c, job, Download{Path: "in/data", URL: s.URL + "/data", Digest: digest}, nil)
}

func TestDownloadIsStored(t *testing.T) {
	b := content(1, 300_000)
	s := newSite(t, b)
	store := openStore(t, t.TempDir(), 1<<20)
	want := DigestOf(b)
	for _, digest := range []string{"", DigestOf(b).String()} {
		got, err := s.download(t, store, digest)
		if err != nil || got != want {
			t.Fatalf("got %v, %v; want %v", got, err, want)
		}
	}
	wantFile(t, store.Path(want), b)
	wantBytesOfContents(t, store)
	if s.complete != 1 {
		t.Errorf("the server sent the file %d times, want once: the digest was known the second time", s.complete)
	}
	if _, err := store.Put(t.Context(), "other", content(2, 900_000)); !errors.Is(err, errFull) {
		t.Errorf("got %v: content that the job has downloaded was evicted (T4)", err)
	}
}

// wantBytesOfContents is wantBytes without the pages.
func wantBytesOfContents(t *testing.T, s *Store) {
	t.Helper()
	if err := os.RemoveAll(string(s.dir) + "/" + webDir); err != nil {
		t.Fatal(err)
	}
	wantBytes(t, s)
}

func TestDownloadIsConditional(t *testing.T) {
	s := newSite(t, content(1, 1000))
	dir := t.TempDir()
	for want := range 3 {
		if _, err := s.download(t, openStore(t, dir, 1<<20), ""); err != nil { // a new process each time
			t.Fatal(err)
		}
		if s.complete != 1 || s.unasked != want {
			t.Errorf("the server sent the file %d times and reported it unchanged %d times; want 1 and %d", s.complete, s.unasked, want)
		}
	}
	s.content, s.etag = content(2, 1000), `"2"`
	if d, err := s.download(t, openStore(t, dir, 1<<20), ""); err != nil || d != DigestOf(s.content) {
		t.Errorf("got %v, %v; want the new content", d, err)
	}
}

func TestT2DownloadIsResumed(t *testing.T) {
	b := content(1, 500_000)
	for name, digest := range map[string]string{"by digest": DigestOf(b).String(), "by the server's ETag": ""} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, b)
			s.cut = 200_000
			store := openStore(t, t.TempDir(), 1<<20)
			if d, err := s.download(t, store, digest); err != nil || d != DigestOf(b) {
				t.Fatalf("the download returned %v, %v", d, err)
			}
			if len(s.ranges) != 1 || s.ranges[0] == "bytes=0-" || s.complete != 1 {
				t.Errorf("requested ranges %q, and %d times the whole file", s.ranges, s.complete)
			}
		})
	}
}

func TestChangedDownloadRestarts(t *testing.T) {
	s := newSite(t, content(1, 500_000))
	s.cut = 200_000
	store := openStore(t, t.TempDir(), 1<<20)
	sp, err := openSpool(t.Context(), store, (&download{Download: Download{URL: s.URL + "/data"}}).key())
	if err != nil {
		t.Fatal(err)
	}
	sp.Write(content(3, 100_000)) // of another version, by another process
	sp.close()
	store.pages.write(sp.key, page{ETag: `"0"`}, store.keeps)
	store = openStore(t, string(store.dir), 1<<20)
	if d, err := s.download(t, store, ""); err != nil || d != DigestOf(s.content) {
		t.Errorf("got %v, %v; want the present content", d, err)
	}
	wantBytesOfContents(t, store)
}

// A wrong partial content is detected at the end of the download, and fetched again.
func TestT1WrongPartIsFetchedAgain(t *testing.T) {
	b := content(1, 500_000)
	s := newSite(t, b)
	digest := DigestOf(b).String()
	store := openStore(t, t.TempDir(), 1<<20)
	sp, err := openSpool(t.Context(), store, (&download{Download: Download{URL: s.URL + "/data", Digest: digest}}).key())
	if err != nil {
		t.Fatal(err)
	}
	sp.Write(content(2, 100_000))
	sp.close()
	if d, err := s.download(t, store, digest); err != nil || d != DigestOf(b) {
		t.Errorf("the download returned %v, %v", d, err)
	}
	if len(s.ranges) != 1 || s.complete != 1 {
		t.Errorf("requested ranges %q, and %d times the whole file; want once each", s.ranges, s.complete)
	}
}

func TestFailingDownloads(t *testing.T) {
	b := content(1, 10_000)
	s := newSite(t, b)
	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for err := error(nil); err == nil; { // without a Content-Length
			_, err = w.Write(b)
		}
	}))
	defer endless.Close()
	tests := map[string]struct {
		d    Download
		want string
	}{
		"T1 wrong digest":               {Download{Path: "p", URL: s.URL, Digest: DigestOf(nil).String()}, "its bytes have the digest sha256:" + DigestOf(b).String()},
		"missing":                       {Download{Path: "p", URL: gone.URL}, "404"},
		"T4 endless":                    {Download{Path: "p", URL: endless.URL}, errFull.Error()},
		"T3 path":                       {Download{Path: "../p", URL: s.URL}, "not relative and clean"},
		"scheme":                        {Download{Path: "p", URL: "file:///etc/passwd"}, "want an http or https URL"},
		"the password is not disclosed": {Download{Path: "p", URL: strings.Replace(gone.URL, "//", "//me:secret@", 1)}, "me:xxxxx@"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store := openStore(t, t.TempDir(), 1<<20)
			c := &http.Client{Transport: &http.Transport{}}
			defer c.CloseIdleConnections()
			_, err := store.Download(t.Context(), c, job, test.d, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want %q", err, test.want)
			}
			wantBytesOfContents(t, store)
		})
	}
}

func TestConcurrentDownloadsOfOneURLShareATransfer(t *testing.T) {
	b := content(1, 500_000)
	s := newSite(t, b)
	store := openStore(t, t.TempDir(), 1<<20)
	var wg sync.WaitGroup
	var failed atomic.Int32
	for range 8 {
		wg.Go(func() {
			if _, err := s.download(t, store, ""); err != nil {
				failed.Add(1)
			}
		})
	}
	wg.Wait()
	if failed.Load() > 0 || s.complete != 1 || s.unasked != 7 {
		t.Errorf("%d failed, sent %d times, unchanged %d times", failed.Load(), s.complete, s.unasked)
	}
}

func TestDownloadDoesNotWaitForASilentServer(t *testing.T) {
	over := make(chan struct{})
	var asked atomic.Int32
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	defer silent.Close()
	defer close(over)
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	l := &download{
		Download: Download{Path: "p", URL: silent.URL}, store: openStore(t, t.TempDir(), 1000), client: c, job: job,
		progress: func(int64, int64) {}, stall: time.Millisecond, backoff: time.Microsecond,
	}
	if _, err := l.run(t.Context()); !errors.Is(err, errStalled) {
		t.Errorf("the download returned %v, want errStalled", err)
	}
}

// A pinned file, which may be served, is not replaced when it is downloaded again.
func TestDownloadKeepsPinnedContent(t *testing.T) {
	b := content(1, 300_000)
	s := newSite(t, b)
	store := openStore(t, t.TempDir(), 1<<20)
	d := put(t, store, "another job", b)
	before, err := os.Stat(store.Path(d))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.download(t, store, ""); err != nil || got != d {
		t.Fatalf("the download returned %v, %v", got, err)
	}
	after, err := os.Stat(store.Path(d))
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("the file was replaced: %v, %v", after, err)
	}
	wantBytesOfContents(t, store)
}

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/filetransfer"
)

// An inputList is the content of an input list: a directory, and two files on a server, one of them
// with its digest.
type inputList struct {
	list   string
	counts map[string]int // of all words
	asked  atomic.Int32   // number of requests to the server for contents
}

func writeInputList(t *testing.T) *inputList {
	t.Helper()
	l := &inputList{counts: map[string]int{"alpha": 1, "beta": 2, "gamma": 3, "delta": 4}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"one"`)
		if r.Header.Get("If-None-Match") == `"one"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		l.asked.Add(1)
		fmt.Fprint(w, map[string]string{"/known": "gamma gamma gamma", "/latest": "delta delta delta delta"}[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	for name, text := range map[string]string{"corpus/a.txt": "alpha", "corpus/deep/b.txt": "beta beta"} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l.list = filepath.Join(dir, "list")
	text := fmt.Sprintf("# folder and web\n%s/corpus\n%s/known sha256:%s as web/known.txt\n%s/latest\n",
		dir, server.URL, filetransfer.DigestOf([]byte("gamma gamma gamma")), server.URL)
	if err := os.WriteFile(l.list, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestListsOfFoldersAndURLs stages a directory and files from a web server. A p2pboot that has the
// files asks the server only whether they have changed.
func TestListsOfFoldersAndURLs(t *testing.T) {
	t.Parallel()
	l := writeInputList(t)
	own := boot(t, "--slots", "2")
	for range 2 {
		j := submit(t, own.home, "-n", "2", "-l", l.list, filepath.Join(bin, "wordcount"), "-all")
		if s := j.wait(); s != 0 {
			t.Fatalf("exit status %d", s)
		}
		compareCounts(t, j.stdout.String(), l.counts)
		if n := l.asked.Load(); n != 2 {
			t.Errorf("the server was asked for %d contents, want 2", n)
		}
	}
}

// TestT1DownloadWithAWrongDigest expects that a job with a wrong download does not run.
func TestT1DownloadWithAWrongDigest(t *testing.T) {
	t.Parallel()
	l := writeInputList(t)
	list, err := os.ReadFile(l.list)
	if err != nil {
		t.Fatal(err)
	}
	other := filetransfer.DigestOf([]byte("another text")).String()
	known := filetransfer.DigestOf([]byte("gamma gamma gamma")).String()
	if err := os.WriteFile(l.list, []byte(strings.ReplaceAll(string(list), known, other)), 0o644); err != nil {
		t.Fatal(err)
	}
	j := submit(t, t.TempDir(), "--local", "1", "-n", "1", "-l", l.list, filepath.Join(bin, "wordcount"), "-all")
	if s := j.wait(); s != 64 || !strings.Contains(j.stderr.String(), "its bytes have the digest sha256:"+known) {
		t.Errorf("exit status %d, want 64 and the digests", s)
	}
}

// cache is the output of p2pboot cache --json.
type cache struct {
	Running  bool
	Bytes    int64
	Contents []content
}

type content struct {
	Digest   string
	Bytes    int64
	Complete bool
	Jobs     []string
	URL      string
}

// cacheOf runs p2pboot cache on a home.
func cacheOf(t *testing.T, home string, args ...string) (c cache) {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "p2pboot"), slices.Concat([]string{"cache"}, args, []string{"--home", home, "--json"})...)
	loopback.prepare(cmd, home)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("p2pboot cache %v: %v", args, err)
	}
	if err := json.Unmarshal(out, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestT4CacheIsShownAndTrimmed shows and trims a cache while a job uses a part of it, and while no
// peer runs.
func TestT4CacheIsShownAndTrimmed(t *testing.T) {
	t.Parallel()
	l := writeInputList(t)
	own := boot(t, "--slots", "2")
	if j := submit(t, own.home, "-n", "1", "-l", l.list, filepath.Join(bin, "wordcount"), "-all"); j.wait() != 0 {
		t.Fatalf("exit status %d", j.status)
	}
	j := submit(t, own.home, "-n", "1", "sleep", "1000")
	j.waitRunning()
	before := cacheOf(t, own.home)
	var used, fromWeb int64
	for _, e := range before.Contents {
		if len(e.Jobs) > 0 {
			used += e.Bytes
		}
		if e.URL != "" {
			fromWeb++
		}
	}
	if !before.Running || fromWeb != 2 || used == 0 || used >= before.Bytes {
		t.Errorf("the cache while a job runs: %+v", before)
	}
	cacheOf(t, own.home, "clear")
	if after := cacheOf(t, own.home); after.Bytes != used {
		t.Errorf("the cache, cleared while a job runs: %+v; want the %d bytes of the job left", after, used)
	}
	j.cmd.Process.Signal(os.Interrupt)
	if s := j.wait(); s != 130 {
		t.Errorf("exit status %d, want 130", s)
	}
	expectNothingLeft(t, []*peerProcess{own})
	own.kill()
	if after := cacheOf(t, own.home); after.Running || after.Bytes != used {
		t.Errorf("the cache after the peer was killed: %+v; want %d bytes", after, used)
	}
	cacheOf(t, own.home, "trim", "--to", "0")
	if after := cacheOf(t, own.home); after.Bytes != 0 || len(after.Contents) != 0 {
		t.Errorf("the cache, trimmed to nothing: %+v", after)
	}
}

// TestT2DownloadSurvivesAKill kills the peer that downloads: the next one requests only the rest.
func TestT2DownloadSurvivesAKill(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("epsilon ", 1<<17))
	half := len(text) / 2
	var asked []string
	var mu sync.Mutex
	stuck := make(chan struct{}) // closed once half of the file was sent
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Header.Get("Range"))
		first := len(asked) == 1
		mu.Unlock()
		if !first {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.Write(text[:half])
		http.NewResponseController(w).Flush()
		close(stuck)
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(over)
	home := t.TempDir()
	input := fmt.Sprintf("%s/text sha256:%s", server.URL, filetransfer.DigestOf(text))
	args := []string{"-n", "1", "-i", input, filepath.Join(bin, "wordcount"), "-all"}
	own := bootAt(t, home, "--slots", "1")
	submit(t, home, args...)
	<-stuck
	eventually(t, "half of the file in the cache", func() error {
		if n := partialBytes(home); n < int64(half) {
			return fmt.Errorf("%d bytes", n)
		}
		return nil
	})
	own.kill()
	if c := cacheOf(t, home); partialBytes(home) != int64(half) || !slices.ContainsFunc(c.Contents, func(e content) bool {
		return !e.Complete && e.Bytes == int64(half) && e.URL != ""
	}) {
		t.Errorf("after the kill, the cache contains %+v, want a partial file of %d bytes", c, half)
	}
	bootAt(t, home, "--slots", "1")
	j := submit(t, home, args...)
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	compareCounts(t, j.stdout.String(), map[string]int{"epsilon": 1 << 17})
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"", fmt.Sprintf("bytes=%d-", half)}; !slices.Equal(asked, want) {
		t.Errorf("the server was asked for %q, want %q", asked, want)
	}
}

// partialBytes returns the number of bytes of partial downloads in a home.
func partialBytes(home string) (n int64) {
	entries, _ := os.ReadDir(filepath.Join(home, "cache", "partial"))
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

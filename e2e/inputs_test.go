package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/p2pmpi/p2pmpi/filetransfer"
)

// A listed is what an input list of a test names: a folder, and two files of a server, one with
// its digest.
type listed struct {
	list   string
	counts map[string]int // of all words
	asked  atomic.Int32   // the server for contents
}

func writeListed(t *testing.T) *listed {
	t.Helper()
	l := &listed{counts: map[string]int{"alpha": 1, "beta": 2, "gamma": 3, "delta": 4}}
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

// TestListsOfFoldersAndURLs stages a folder and files from a web server, which a p2pboot that has
// them asks only whether they have changed.
func TestListsOfFoldersAndURLs(t *testing.T) {
	t.Parallel()
	l := writeListed(t)
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

// TestT1DownloadThatIsNotWhatItsDigestSays runs nothing.
func TestT1DownloadThatIsNotWhatItsDigestSays(t *testing.T) {
	t.Parallel()
	l := writeListed(t)
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

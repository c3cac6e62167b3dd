package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestT2CollectingResumesAfterAKill kills the p2pboot or the p2prun that collects a large file.
func TestT2CollectingResumesAfterAKill(t *testing.T) {
	t.Parallel()
	const mib = 64
	for _, kill := range []string{"p2pboot", "p2prun"} {
		t.Run(kill, func(t *testing.T) {
			t.Parallel()
			peers := grid(t, 3, "--slots", "1")
			args := []string{"-n", "1", "-r", "2", "-o", "file.bin", filepath.Join(bin, "rude"), "init", fmt.Sprintf("file=%d", mib), "barrier", "finalize"}
			var first, last *job
			if kill == "p2pboot" {
				own := boot(t, "--slots", "0", "--supernode", peers[0].addr)
				first = handTo(t, own, args...)
				first.awaitCollecting()
				own.kill()
				t.Logf("%d bytes had arrived", partialBytes(own.home))
				own.again(peers[0])
				last = first
			} else {
				home := t.TempDir()
				first = keep(t, home, peers, args...)
				first.awaitCollecting()
				first.kill()
				last = attach(t, home)
			}
			if s := last.wait(); s != 0 {
				t.Fatalf("exit status %d", s)
			}
			expectFile(t, filepath.Join(first.cmd.Dir, "file.bin"), mib<<20)
			expectNothingLeft(t, peers)
		})
	}
}

// awaitCollecting returns when a part of the file has arrived. The file must not have its final
// name yet.
func (j *job) awaitCollecting() {
	j.t.Helper()
	j.waitFor("a file in transit", func(e event) bool { return e.Event == "phase" && e.Phase == "collecting" && e.Rate > 0 })
	if _, err := os.Stat(filepath.Join(j.cmd.Dir, "file.bin")); !errors.Is(err, os.ErrNotExist) {
		j.t.Errorf("the file has its final name before it is complete: %v", err)
	}
}

// expectFile expects that rude has written a file of the given size, and that the file is complete.
func expectFile(t *testing.T, name string, size int64) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if want := fileSum(size); err != nil || n != size || !slices.Equal(h.Sum(nil), want) {
		t.Errorf("%s has %d bytes, %v; want the %d bytes that rank 0 wrote", name, n, err, size)
	}
}

// fileSum returns the digest of the file that rank 0 of rude writes.
func fileSum(size int64) []byte {
	h := sha256.New()
	block := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(block)
	for i := range size >> 20 {
		block[0], block[1] = byte(i>>8), byte(i)
		h.Write(block)
	}
	return h.Sum(nil)
}

package filetransfer

import (
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// BenchmarkFetch measures one large file over loopback, hashed and written.
func BenchmarkFetch(b *testing.B) {
	submitter, peer := newPair(b)
	w, _ := offer(b, submitter, peer, content(1, 64<<20))
	b.SetBytes(w.Size)
	for b.Loop() {
		peer.store = openStore(b, b.TempDir(), 1<<30)
		if err := peer.Fetch(b.Context(), submitter.host.ID(), job, []Want{w}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFetchBesideStream measures one large file, alternating with the same number of bytes over a
// plain libp2p stream. The file is also read, hashed and written. The ceiling is the ratio of the processor
// times of both transfers, at both ends together. It limits the throughput if the processors are fully used.
func BenchmarkFetchBesideStream(b *testing.B) {
	const size = 256 << 20
	submitter, peer := newPair(b)
	w, _ := offer(b, submitter, peer, content(1, size))
	submitter.host.SetStreamHandler("/raw", func(s network.Stream) {
		chunk := make([]byte, pieceSize)
		for range size / pieceSize {
			if _, err := s.Write(chunk); err != nil {
				_ = s.Reset() // the reader fails
				return
			}
		}
		_ = s.Close() // the reader counts the bytes
	})
	raw := func() time.Duration {
		begun := time.Now()
		s, err := peer.host.NewStream(b.Context(), submitter.host.ID(), "/raw")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Write([]byte{0}); err != nil { // completes protocol negotiation
			b.Fatal(err)
		}
		if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, s, make([]byte, pieceSize)); n != size || err != nil {
			b.Fatal(n, err)
		}
		return time.Since(begun)
	}
	raw() // opens the connection
	var ratios []float64
	var stream, fetch, ofStream, ofFetch time.Duration
	for b.Loop() {
		peer.store = openStore(b, b.TempDir(), 1<<30)
		before := computed(b)
		a := raw()
		between := computed(b)
		begun := time.Now()
		if err := peer.Fetch(b.Context(), submitter.host.ID(), job, []Want{w}, nil); err != nil {
			b.Fatal(err)
		}
		c := time.Since(begun)
		stream, fetch = stream+a, fetch+c
		ofStream, ofFetch = ofStream+between-before, ofFetch+computed(b)-between
		ratios = append(ratios, a.Seconds()/c.Seconds())
		if err := os.RemoveAll(string(peer.store.dir)); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "ratio")
	b.ReportMetric(ofStream.Seconds()/ofFetch.Seconds(), "ceiling")
	b.ReportMetric(ratios[0], "least")
	b.ReportMetric(ratios[len(ratios)-1], "greatest")
	b.ReportMetric(float64(len(ratios))*size/1e6/stream.Seconds(), "stream-MB/s")
	b.ReportMetric(float64(len(ratios))*size/1e6/fetch.Seconds(), "fetch-MB/s")
}

// computed returns the user and system time of this process.
func computed(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSmallFiles measures each step of transferring 10,000 small files.
func BenchmarkSmallFiles(b *testing.B) {
	submitter, peer := newPair(b)
	files := tree(b, b.TempDir(), 10_000)
	m, err := Build(b.Context(), files)
	if err != nil {
		b.Fatal(err)
	}
	defer submitter.Serve(job, []p2ppeer.ID{peer.host.ID()}, Locate(m, files))()
	b.Run("Build", func(b *testing.B) {
		for b.Loop() {
			if _, err := Build(b.Context(), files); err != nil {
				b.Fatal(err)
			}
		}
	})
	dir := b.TempDir() // folder of all stores; files are laid out from the last one
	b.Run("Fetch", func(b *testing.B) {
		for b.Loop() {
			var err error
			if dir, err = os.MkdirTemp(dir, ""); err != nil {
				b.Fatal(err)
			}
			peer.store = openStore(b, dir, 1<<30)
			if err := peer.Fetch(b.Context(), submitter.host.ID(), job, m.Wants(), nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Materialize", func(b *testing.B) {
		for b.Loop() {
			if err := peer.store.Materialize(b.Context(), m, b.TempDir()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkPacked measures contents over links of different rates, compressed and uncompressed.
func BenchmarkPacked(b *testing.B) {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		skip.Lacks(b, err)
	}
	contents := map[string][]byte{"program": program[:min(len(program), 16<<20)], "text": text(16 << 20), "random": content(1, 16<<20)}
	for _, mbit := range []float64{10, 100, 1000} {
		for _, name := range []string{"program", "text", "random"} {
			for _, packed := range []bool{false, true} {
				b.Run(fmt.Sprintf("%vMbit/%s/packed=%v", mbit, name, packed), func(b *testing.B) {
					submitter, peer := newPair(b)
					slow(peer, mbit*1e6/8)
					peer.unpacks = packed
					w, _ := offer(b, submitter, peer, contents[name][:int(min(16, mbit/2))<<20])
					b.SetBytes(w.Size)
					for b.Loop() {
						peer.store = openStore(b, b.TempDir(), 1<<30)
						if err := peer.Fetch(b.Context(), submitter.host.ID(), job, []Want{w}, nil); err != nil {
							b.Fatal(err)
						}
					}
					s := submitter.Stats()
					b.ReportMetric(100*float64(s.BytesSent-s.BytesSpared)/float64(s.BytesSent), "%sent")
				})
			}
		}
	}
}

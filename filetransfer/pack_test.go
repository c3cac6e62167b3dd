package filetransfer

import (
	"bytes"
	"context"
	"runtime"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/klauspost/compress/zstd"
)

// text returns compressible data.
func text(size int) []byte {
	return bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog, again and again\n"), size/61+1)[:size]
}

func TestPiecesAreCompressedIfWorthwhile(t *testing.T) {
	tests := map[string]struct {
		b     []byte
		link  rate
		speed rate
		want  bool
	}{
		"text, slow link":            {text(pieceSize), 1 << 20, 0, true},
		"text, fast link":            {text(pieceSize), 1 << 30, 0, false},
		"text, unknown link":         {text(pieceSize), 0, 0, false},
		"text, busy processor":       {text(pieceSize), 10 << 20, 5 << 20, false},
		"text, fast processor":       {text(pieceSize), 100 << 20, 2 << 30, true},
		"random, slow link":          {content(1, pieceSize), 1 << 10, 0, false},
		"little random, slow link":   {content(1, 4*sampleBytes), 1 << 10, 0, false},
		"little text":                {text(minPacked - 1), 1 << 10, 0, false},
		"text beginning with random": {append(content(1, pieceSize/4), text(pieceSize/4)...), 1 << 20, 0, true},
		"text in the middle":         {append(append(content(1, pieceSize/2), text(sampleBytes)...), content(2, pieceSize/2-sampleBytes)...), 50 << 20, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := packer{speed: test.speed}
			packed := p.pack(test.b, nil, test.link)
			if (packed != nil) != test.want {
				t.Fatalf("%d bytes compressed to %d, want compression: %v", len(test.b), len(packed), test.want)
			}
			if packed == nil {
				return
			}
			got := make([]byte, len(test.b))
			if err := unpack(got, packed); err != nil || !bytes.Equal(got, test.b) {
				t.Errorf("the unpacked bytes differ: %v", err)
			}
			if p.speed == test.speed {
				t.Error("the compression rate was not measured")
			}
		})
	}
}

func TestRateFollowsMeasurements(t *testing.T) {
	var r rate
	r.take(1000, time.Second)
	if r != 1000 {
		t.Errorf("at first: %v", r)
	}
	for range 20 {
		r.take(10, time.Millisecond)
	}
	if r < 9900 || r > 10000 {
		t.Errorf("after a change to 10000: %v", r)
	}
	r.take(1, 0) // a stopped clock does not lead to an infinite rate
	if r > 1<<20 {
		t.Errorf("after a measurement of no time: %v", r)
	}
}

// A part that decompresses to more than its stated size is rejected, using no more memory than that size.
func TestDecompressionBombIsRejected(t *testing.T) {
	e, err := zstd.NewWriter(nil, zstd.WithWindowSize(8<<20))
	if err != nil {
		t.Fatal(err)
	}
	bomb := e.EncodeAll(make([]byte, 256<<20), nil)
	for _, size := range []int{0, 1000, pieceSize} {
		b := make([]byte, size)
		if err := unpack(b, bomb); err == nil {
			t.Errorf("%d bytes of 256 MiB were accepted", size)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 4 {
		if err := unpack(make([]byte, 1000), bomb); err == nil {
			t.Error("1000 bytes of 256 MiB were accepted")
		}
	}
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 16<<20 {
		t.Errorf("%d MiB were allocated for %d bytes", taken>>20, len(bomb))
	}
	if err := unpack(make([]byte, 1000), encoder().EncodeAll(text(900), nil)); err == nil {
		t.Error("fewer bytes than announced were accepted")
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(encoder().EncodeAll(text(1000), nil), 1000)
	f.Add(encoder().EncodeAll(nil, nil), 0)
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd}, 7)
	f.Fuzz(func(t *testing.T, packed []byte, size int) {
		if size < 0 || size > pieceSize || len(packed) > pieceSize {
			return
		}
		b := append(make([]byte, size), "behind"...)
		_ = unpack(b[:size], packed)
		if string(b[size:]) != "behind" {
			t.Fatal("decompression wrote past the end of its buffer")
		}
	})
}

// A slowLink carries rate bytes per second towards its reader.
type slowLink struct {
	link
	rate float64
}

func (l *slowLink) Read(b []byte) (int, error) {
	n, err := l.link.Read(b[:min(len(b), 16<<10)])
	time.Sleep(time.Duration(float64(n) / l.rate * float64(time.Second))) // simulates the rate
	return n, err
}

func slow(s *Service, rate float64) {
	s.open = func(ctx context.Context, to p2ppeer.ID) (link, error) {
		l, err := s.openStream(ctx, to)
		return &slowLink{l, rate}, err
	}
}

func TestT1CompressedPiecesArrive(t *testing.T) {
	const link = 16 << 20
	for name, c := range map[string]struct {
		content []byte
		packed  bool
	}{"text": {text(8 << 20), true}, "random": {content(1, 8<<20), false}} {
		t.Run(name, func(t *testing.T) {
			submitter, peer := newPair(t)
			slow(peer, link)
			w, _ := offer(t, submitter, peer, c.content)
			if err := peer.Fetch(t.Context(), submitter.host.ID(), job, []Want{w}, nil); err != nil {
				t.Fatal(err)
			}
			wantFile(t, peer.store.Path(w.Digest), c.content)
			s := submitter.Stats()
			if (s.BytesSpared > 0) != c.packed || s.BytesSent != w.Size {
				t.Errorf("%+v; want bytes saved: %v", s, c.packed)
			}
			t.Logf("%.0f %% of the bytes were sent", 100*float64(s.BytesSent-s.BytesSpared)/float64(s.BytesSent))
		})
	}
}

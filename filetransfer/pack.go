package filetransfer

import (
	"fmt"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Pieces go compressed over a link that is slower than compressing them, if that makes them
// smaller. Who asks measures how fast they come, and says so: only then may they be compressed.
// Who answers tries a sample of the piece, and compares.

const (
	sampleBytes = 8 << 10 // of a piece that are tried first
	minPacked   = 512     // bytes: less is not worth it
	// hoped is the part of a piece that compression leaves, at best, when it is tried at all.
	hoped = 0.3
	// margin is how many times more time it must spare than it takes: the asking peer has to
	// undo it, and the processor may be a program's.
	margin = 2
	// guessedPacking is how fast compressing is taken to be, in bytes a second, before it was measured.
	guessedPacking = 200 << 20
	// freshness is the weight of what is measured last.
	freshness = 0.3
)

// A rate is how many bytes come in a second of late; 0: not known.
type rate float64

// take takes in that so many bytes took a time.
func (r *rate) take(bytes int, took time.Duration) {
	now := rate(float64(bytes) / max(took, time.Microsecond).Seconds())
	if *r == 0 {
		*r = now
		return
	}
	*r += freshness * (now - *r)
}

// A packer compresses what goes over one link.
type packer struct{ speed rate }

// pays reports whether compressing so many bytes to a part of them spares more time on a link than
// it takes.
func (p *packer) pays(bytes int, part float64, link rate) bool {
	speed := p.speed
	if speed == 0 {
		speed = guessedPacking
	}
	spared := float64(bytes) * (1 - part) / float64(link)
	return spared > margin*float64(bytes)/float64(speed)
}

// pack returns b compressed, appended to buf, or nil if it is better sent as it is over a link of that rate.
func (p *packer) pack(b, buf []byte, link rate) []byte {
	if link <= 0 || len(b) < minPacked || !p.pays(len(b), hoped, link) {
		return nil
	}
	if middle := len(b) / 2; len(b) > 4*sampleBytes {
		sample := b[middle : middle+sampleBytes]
		if part := float64(len(encoder().EncodeAll(sample, buf[:0]))) / sampleBytes; !p.pays(len(b), part, link) {
			return nil
		}
	}
	begun := time.Now()
	packed := encoder().EncodeAll(b, buf[:0])
	p.speed.take(len(b), time.Since(begun))
	if len(packed) > len(b)-len(b)/16 {
		return nil
	}
	return packed
}

// unpack fills b with what packed is, which must be just that: it needs no more room, whatever
// it says.
func unpack(b, packed []byte) error {
	out, err := decoder().DecodeAll(packed, b[:0:len(b)])
	if err != nil {
		return fmt.Errorf("compressed part: %w", err)
	}
	if len(out) != len(b) {
		return fmt.Errorf("compressed part of %d bytes, want %d", len(out), len(b))
	}
	return nil
}

// encoder and decoder may be used by many goroutines; they start none.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithWindowSize(PieceBytes))
	if err != nil {
		panic(err) // the options are constant
	}
	return e
})

var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(PieceBytes), zstd.WithDecoderMaxWindow(PieceBytes))
	if err != nil {
		panic(err)
	}
	return d
})

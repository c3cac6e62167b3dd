package filetransfer

import (
	"fmt"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
)

// On a link that is slower than compression, pieces are compressed if that makes them smaller. The
// fetching peer measures and reports the rate at which pieces arrive; without a report, pieces are not
// compressed. The sending peer compresses a sample of the piece first, to estimate the gain.

const (
	sampleBytes = 8 << 10 // size of the sample that is compressed first
	minPacked   = 512     // bytes; smaller pieces are not compressed
	// hoped is the assumed ratio of compressed to original size when deciding whether to try.
	hoped = 0.3
	// margin is the least ratio of saved to spent time. The fetching peer has to decompress, and the
	// processor may be busy with a program.
	margin = 2
	// guessedPacking is the assumed speed of compression, in bytes per second, before it was measured.
	guessedPacking = 200 << 20
	// freshness is the weight of the latest measurement in a rate.
	freshness = 0.3
)

// A rate is a moving average of bytes per second, or 0 if unknown.
type rate float64

// take adds a measurement: the time that the given number of bytes took.
func (r *rate) take(bytes int, took time.Duration) {
	now := rate(float64(bytes) / max(took, time.Microsecond).Seconds())
	if *r == 0 {
		*r = now
		return
	}
	*r += freshness * (now - *r)
}

// A packer compresses the data sent over one link.
type packer struct{ speed rate }

// worthwhile reports whether compressing the given number of bytes to the given part saves more time on the
// link than it costs.
func (p *packer) worthwhile(bytes int, part float64, link rate) bool {
	speed := p.speed
	if speed == 0 {
		speed = guessedPacking
	}
	spared := float64(bytes) * (1 - part) / float64(link)
	return spared > margin*float64(bytes)/float64(speed)
}

// pack returns b compressed, using buf as storage. It returns nil if b is better sent uncompressed over a
// link of that rate.
func (p *packer) pack(b, buf []byte, link rate) []byte {
	if link <= 0 || len(b) < minPacked || !p.worthwhile(len(b), hoped, link) {
		return nil
	}
	if middle := len(b) / 2; len(b) > 4*sampleBytes {
		sample := b[middle : middle+sampleBytes]
		if part := float64(len(encoder().EncodeAll(sample, buf[:0]))) / sampleBytes; !p.worthwhile(len(b), part, link) {
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

// unpack decompresses packed into b. The output must fill b exactly. unpack allocates no memory for the
// output, whatever the header of packed states.
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

// encoder and decoder are safe for concurrent use; they start no goroutines.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithWindowSize(pieceSize))
	if err != nil {
		panic(err) // the options are constant
	}
	return e
})

var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(pieceSize), zstd.WithDecoderMaxWindow(pieceSize))
	if err != nil {
		panic(err)
	}
	return d
})

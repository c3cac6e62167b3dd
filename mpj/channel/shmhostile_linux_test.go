package channel

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/p2pmpi/p2pmpi/internal/frame"
)

// heapRing returns a ring in ordinary memory, and the memory, for tests that write arbitrary data
// into a ring. The code under test is the same as with a mapping.
func heapRing(t testing.TB) (*ring, []byte) {
	words := make([]uint64, (bulkOffset+minRing)/8)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
	return must(newRing(&memory{b}))(t), b
}

// FuzzShm checks that no data written into a ring by another process makes either end access other
// memory, panic or loop forever.
func FuzzShm(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 2, 0, 0, 0})
	f.Add([]byte{1, 0x10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0})
	longInCell := append(write(controlSize+cellSize+8, 1|200<<16), write(controlSize+cellSize, 2)...)
	f.Add(append(longInCell, 0, 0, 0, 0))
	hostile := frame.AppendHeader([]byte{1, 0x10, 1, 0, 1, 0, 0, 0}, frame.Header{Kind: frame.Data, Size: frame.MaxPayload})
	f.Add(append(hostile, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, program []byte) {
		bells := testHeapBells(2)
		ring, shared := heapRing(t)
		s, r := newShmSender(ring, bells[0], bells[1]), newShmReceiver(ring, bells[1], bells[0])
		payload := make([]byte, 3*minRing)
		under := frame.Frame{}
		playHostile(program, shared, func(word uint32) {
			if !s.begun {
				under = numbered(1, payload[:int(word>>3)%len(payload)])
			}
			s.TrySend(under)
			for range 4 {
				r.TryReceive(func(h frame.Header) []byte { return payload[:min(h.Size, uint64(len(payload)))] })
			}
		})
	})
}

// FuzzPackedHeader checks that each accepted packed header encodes to the same bytes again, so it
// contains no hidden data.
func FuzzPackedHeader(f *testing.F) {
	f.Add([]byte{1, 1, 8, 0, 1, 0, 0, 0, 2, 0, 0, 0, 255, 255, 255, 255, 7})
	f.Add([]byte{99})
	f.Add([]byte{1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		var p packed
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&p)), unsafe.Sizeof(p)), b)
		h, err := p.unpack(uint64(p.length))
		if err != nil {
			return
		}
		if _, err := frame.ParseHeader(frame.AppendHeader(nil, h)); err != nil {
			t.Errorf("%x decodes to %+v, which is no header of a frame: %v", b, h, err)
		}
		var c cell
		if c.put(&h, p.length); c.header != p {
			t.Errorf("%+v decodes to %+v, which encodes to %+v", p, h, c.header)
		}
	})
}

// TestPackedHeaderKeepsAllFields sends the extreme values of each field, in a cell and in the bulk.
func TestPackedHeaderKeepsAllFields(t *testing.T) {
	s, r := shmPair(t, minRing)
	for _, size := range []int{0, 1, 32, 33, inlineSize, inlineSize + 1, 1000} {
		for _, h := range []frame.Header{
			{Kind: frame.Data},
			{Kind: frame.UpToDate, Sync: true, Context: 1<<32 - 1, Rank: 1<<32 - 1, Tag: -1 << 31, Seq: 1<<64 - 1},
			{Kind: frame.Ack, Context: 1, Rank: 2, Tag: 3, Seq: 4},
		} {
			h.Size = uint64(size)
			if done, err := s.TrySend(frame.Frame{Header: h, Payload: make([]byte, size)}); !done || err != nil {
				t.Fatal(done, err)
			}
			if f, ok, err := r.TryReceive(fresh); !ok || err != nil || f.Header != h || len(f.Payload) != size {
				t.Errorf("%+v arrived as %+v with %d bytes, %v, %v", h, f.Header, len(f.Payload), ok, err)
			}
		}
	}
}

// playHostile runs a program against shared memory. An odd word of the program is an address, and
// the next word is the value to write there. An even word makes the ends proceed.
func playHostile(program, shared []byte, move func(word uint32)) {
	for ; len(program) >= 4; program = program[4:] {
		word := binary.LittleEndian.Uint32(program)
		if word&1 == 0 {
			move(word)
			continue
		}
		place := int(word>>1) % (len(shared) / 4) * 4
		copy(shared[place:], program[4:min(len(program), 12)])
		program = program[min(len(program)-4, 8):]
	}
}

// write returns the part of a program that stores a value at a place.
func write(place, value uint64) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(place/4<<1|1))
	return binary.LittleEndian.AppendUint64(b, value)
}

func testHeapBells(n int) []*Bell {
	bells := make([]*Bell, n)
	for i := range bells {
		bells[i] = &Bell{state: new(atomic.Uint32)}
	}
	return bells
}

func TestShmCorruptionIsAnError(t *testing.T) {
	long := numbered(1, make([]byte, 2*minRing))
	for name, c := range map[string]struct {
		spoil    func(*ring)
		sending  bool // the sender detects the corruption
		mentions string
	}{
		"stamp of another lap":         {func(r *ring) { r.cells[0].stamp.Store(7) }, false, "stamp 7"},
		"unknown kind":                 {func(r *ring) { r.cells[0].header.kind = 99 }, false, "kind 99"},
		"kind 0":                       {func(r *ring) { r.cells[0].header.kind = 0 }, false, "kind 0"},
		"unknown flag":                 {func(r *ring) { r.cells[0].header.sync = 2 }, false, "flags 0x2"},
		"payload longer than its cell": {func(r *ring) { r.cells[0].header.length = inlineSize + 1 }, false, "fit"},
		"longest payload in a cell":    {func(r *ring) { r.cells[0].header.length = inBulk - 1 }, false, "fit"},
		"empty part":                   {func(r *ring) { r.cells[0].extent().part = 0 }, false, "corrupt"},
		"part beyond the frame":        {func(r *ring) { r.cells[0].extent().part = 3 * minRing }, false, "corrupt"},
		"part beyond the ring":         {func(r *ring) { r.cells[0].extent().part = minRing + 1 }, false, "corrupt"},
		"longest part":                 {func(r *ring) { r.cells[0].extent().part = 1<<32 - 1 }, false, "corrupt"},
		"frame shorter than its part":  {func(r *ring) { r.cells[0].extent().size = 1 }, false, "corrupt"},
		"more bytes taken than sent":   {func(r *ring) { r.control.freeBulk.Store(1 << 20) }, true, "corrupt"},
		"more records taken than sent": {func(r *ring) { r.control.freeCells.Store(9) }, true, "corrupt"},
	} {
		t.Run(name, func(t *testing.T) {
			bells := testHeapBells(2)
			ring, _ := heapRing(t)
			s, r := newShmSender(ring, bells[0], bells[1]), newShmReceiver(ring, bells[1], bells[0])
			if done, err := s.TrySend(long); done || err != nil {
				t.Fatalf("a frame longer than the ring: got %v, %v", done, err)
			}
			c.spoil(ring)
			for range 2 { // also on the second attempt
				var err error
				if c.sending {
					_, err = s.TrySend(long)
				} else {
					_, _, err = r.TryReceive(fresh)
				}
				if err == nil || !strings.Contains(err.Error(), c.mentions) {
					t.Errorf("got %v, want an error that mentions %q", err, c.mentions)
				}
			}
		})
	}
}

func TestShmRefusesMemoryThatCouldShrink(t *testing.T) {
	f := must(os.CreateTemp(t.TempDir(), ""))(t)
	defer f.Close()
	if err := f.Truncate(bulkOffset + minRing); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenShmSender(f, nil, nil); err == nil {
		t.Error("a ring in a file without seals was opened")
	}
	sealed := must(newMemory("odd", bulkOffset+minRing+1))(t)
	defer sealed.Close()
	if _, err := OpenShmReceiver(sealed, nil, nil); err == nil {
		t.Error("a ring of an odd length was opened")
	}
	if sealed.Truncate(1) == nil {
		t.Error("sealed memory shrank")
	}
	for _, capacity := range []int{-1, 0, minRing - 1, minRing + 1, 2 * maxRing} {
		if f, err := NewRing(capacity); err == nil {
			f.Close()
			t.Errorf("a ring of %d bytes was made", capacity)
		}
	}
}

func TestBoardRefusesCellsOutOfRange(t *testing.T) {
	file := must(NewBoard(3))(t)
	defer file.Close()
	board := must(MapBoard(file))(t)
	for _, cell := range []int{-1, 3} {
		if _, err := board.Bell(cell); err == nil {
			t.Errorf("bell %d of 3 exists", cell)
		}
	}
	bell := must(board.Bell(2))(t)
	board.Close()
	if _, err := board.Bell(0); err == nil {
		t.Error("a closed board returned a bell")
	}
	runtime.GC()
	bell.ring() // its memory is still mapped
}

// TestBellLosesNoWakeUp makes two sides wake each other many times. If a bell loses a wake-up, both
// sides sleep until the test times out.
func TestBellLosesNoWakeUp(t *testing.T) {
	const rounds = 20000
	bells := testBells(t, 2)
	var turn atomic.Uint64 // its parity selects the side that proceeds
	side := func(own int, random *rand.Rand) {
		for {
			bells[own].Arm()
			now := turn.Load()
			if now >= rounds {
				bells[own].Disarm()
				bells[1-own].ring()
				return
			}
			if now%2 != uint64(own) {
				if random.IntN(3) == 0 {
					runtime.Gosched()
				}
				bells[own].Sleep()
				continue
			}
			bells[own].Disarm()
			turn.Add(1)
			bells[1-own].ring()
		}
	}
	var sides sync.WaitGroup
	for own := range bells {
		sides.Go(func() { side(own, rand.New(rand.NewPCG(1, uint64(own)))) })
	}
	sides.Wait()
}

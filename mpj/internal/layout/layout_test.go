package layout

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// must returns l. The layouts in the tables are valid.
func must(l *Layout, err error) *Layout {
	if err != nil {
		panic(err)
	}
	return l
}

var (
	char   = Basic(1)
	float  = Basic(4)
	double = Basic(8)
)

// doubleChar is a C struct { double d; char c; } without its padding, with the type map
// {(double,0), (char,8)}, as in MPI-4 example 5.1.
var doubleChar = must(Struct([]Block{{1, 0, double}, {1, 8, char}}))

func TestTypeMapsOfTheStandard(t *testing.T) {
	cases := []struct {
		name             string
		layout           *Layout
		size, lb, extent int
		low, trueExtent  int
		segments         []segment
	}{
		{"basic", double, 8, 0, 8, 0, 8, []segment{{0, 8, 1, 0}}},
		{"struct, padded", doubleChar, 9, 0, 16, 0, 9, []segment{{0, 9, 1, 0}}},
		{"contiguous", must(Contiguous(3, double)), 24, 0, 24, 0, 24, []segment{{0, 24, 1, 8}}},
		{"contiguous of padded", must(Contiguous(2, doubleChar)), 18, 0, 32, 0, 25, []segment{{0, 9, 2, 16}}},
		{"vector", must(Hvector(2, 3, 32, double)), 48, 0, 56, 0, 56, []segment{{0, 24, 2, 32}}},
		{"vector without gaps", must(Hvector(4, 2, 16, double)), 64, 0, 64, 0, 64, []segment{{0, 64, 1, 16}}},
		{"vector backwards", must(Hvector(3, 1, -16, double)), 24, -32, 40, -32, 40, []segment{{0, 8, 3, -16}}},
		{"column of a column", must(Hvector(2, 1, 80, must(Hvector(3, 1, 16, double)))), 48, 0, 120, 0, 120, []segment{{0, 8, 3, 16}, {80, 8, 3, 16}}},
		{"hindexed, MPI-4 5.1.2", must(Hindexed([]int{3, 1}, []int{64, 0}, doubleChar)), 36, 0, 112, 0, 105, []segment{{64, 9, 3, 16}, {0, 9, 1, 16}}},
		{"hindexed, touching", must(Hindexed([]int{1, 2, 1}, []int{0, 8, 24}, double)), 32, 0, 32, 0, 32, []segment{{0, 32, 1, 8}}},
		{"hindexed with equal distances", must(Hindexed([]int{1, 1, 1}, []int{0, 24, 48}, double)), 24, 0, 56, 0, 56, []segment{{0, 8, 3, 24}}},
		{"struct, MPI-4 5.1.2", must(Struct([]Block{{2, 0, float}, {1, 16, doubleChar}, {3, 26, char}})), 20, 0, 32, 0, 29, []segment{{0, 8, 1, 4}, {16, 9, 1, 0}, {26, 3, 1, 1}}},
		{"subarray", must(Subarray([]int{3, 4}, []int{2, 2}, []int{1, 1}, double)), 32, 0, 96, 40, 48, []segment{{40, 16, 2, 32}}},
		{"subarray of the whole array", must(Subarray([]int{2, 3, 4}, []int{2, 3, 4}, []int{0, 0, 0}, double)), 192, 0, 192, 0, 192, []segment{{0, 192, 1, 8}}},
		{"resized", must(Resized(must(Hvector(4, 1, 64, double)), -8, 16)), 32, -8, 16, 0, 200, []segment{{0, 8, 4, 64}}},
		{"negative extent", must(Contiguous(3, must(Resized(double, 0, -8)))), 24, -16, 8, -16, 24, []segment{{0, 8, 3, -8}}},
		{"negative extent of one item", must(Resized(double, 8, -24)), 8, 8, -24, 0, 8, []segment{{0, 8, 1, 0}}},
		{"resized in a struct", must(Struct([]Block{{1, 0, must(Resized(double, -4, 12))}, {1, 16, char}})), 9, -4, 12, 0, 17, []segment{{0, 8, 1, 0}, {16, 1, 1, 0}}},
		{"padded in a struct", must(Struct([]Block{{1, 0, must(Padded(double, 0, 16))}, {1, 16, char}})), 9, 0, 24, 0, 17, []segment{{0, 8, 1, 0}, {16, 1, 1, 0}}},
		{"resized after others", must(Struct([]Block{{1, -8, double}, {2, 16, must(Resized(char, 0, -4))}})), 10, 12, 0, -8, 25, []segment{{-8, 8, 1, 0}, {16, 1, 2, -4}}},
		{"nothing", must(Contiguous(0, double)), 0, 0, 0, 0, 0, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := c.layout
			got := []int{l.Size(), l.LB(), l.Extent(), l.TrueLB(), l.TrueExtent()}
			want := []int{c.size, c.lb, c.extent, c.low, c.trueExtent}
			if !slices.Equal(got, want) {
				t.Errorf("size, lb, extent, true lb, true extent: got %v, want %v", got, want)
			}
			same := slices.EqualFunc(l.segments, c.segments, func(a, b segment) bool {
				return a.offset == b.offset && a.length == b.length && a.count == b.count && (a.count == 1 || a.stride == b.stride)
			})
			if !same {
				t.Errorf("segments: got %v, want %v", l.segments, c.segments)
			}
		})
	}
}

func TestWrongDatatypesAreRefused(t *testing.T) {
	cases := []struct {
		name string
		make func() (*Layout, error)
		says string
	}{
		{"negative count", func() (*Layout, error) { return Contiguous(-1, double) }, "-1 blocks"},
		{"negative block", func() (*Layout, error) { return Hvector(1, -2, 8, double) }, "-2 items"},
		{"different numbers of lengths and displacements", func() (*Layout, error) { return Hindexed([]int{1}, nil, double) }, "1 block lengths and 0"},
		{"negative block length", func() (*Layout, error) { return Hindexed([]int{1, -1}, []int{0, 0}, double) }, "block 1: -1 items"},
		{"too large", func() (*Layout, error) { return Contiguous(math.MaxInt, double) }, "2^47"},
		{"too far", func() (*Layout, error) { return Hindexed([]int{1}, []int{math.MinInt}, double) }, "2^47"},
		{"too wide", func() (*Layout, error) { return Hvector(3, 1, math.MinInt, double) }, "2^47"},
		{"sum too large", func() (*Layout, error) { return Hvector(1<<30, 1<<30, 0, double) }, "2^47"},
		{"part outside the array", func() (*Layout, error) { return Subarray([]int{3}, []int{2}, []int{2}, double) }, "dimension 0: subsize 2 at start 2"},
		{"no dimensions", func() (*Layout, error) { return Subarray(nil, nil, nil, double) }, "0 sizes"},
		{"array too large", func() (*Layout, error) {
			return Subarray([]int{math.MaxInt, math.MaxInt}, []int{1, 1}, []int{math.MaxInt - 1, 0}, double)
		}, "2^47"},
		{"negative extent too large", func() (*Layout, error) { return Resized(double, 0, math.MinInt) }, "extent -"},
		{"negative bound too large", func() (*Layout, error) { return Resized(double, -1<<46, -1<<47) }, "extent -"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := c.make(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that contains %q", err, c.says)
			}
		})
	}
}

// TestCheckRejectsAccessesOutOfBounds checks that Check rejects accesses outside the memory.
func TestCheckRejectsAccessesOutOfBounds(t *testing.T) {
	back := must(Hvector(3, 1, -16, double)) // bytes -32 to 7
	cases := []struct {
		name          string
		layout        *Layout
		origin, count int
		memory        int
		ok            bool
	}{
		{"fits", double, 0, 4, 32, true},
		{"one too many", double, 0, 5, 32, false},
		{"from the middle", double, 8, 4, 32, false},
		{"nothing, anywhere", double, 99, 0, 32, true},
		{"backwards from the end", back, 32, 1, 40, true},
		{"backwards from the beginning", back, 0, 1, 40, false},
		{"gap after the last item is outside", must(Contiguous(2, doubleChar)), 0, 1, 25, true},
		{"gap between items is outside", must(Contiguous(2, doubleChar)), 0, 2, 50, false},
		{"items backwards", must(Resized(double, 0, -8)), 24, 4, 32, true},
		{"items backwards, one too many", must(Resized(double, 0, -8)), 24, 5, 32, false},
		{"items backwards, beyond the end", must(Resized(double, 0, -8)), 32, 1, 32, false},
		{"negative count", double, 0, -1, 32, false},
		{"count that overflows", double, 0, math.MaxInt, 32, false},
		{"origin that overflows", double, math.MaxInt - 4, 1, 32, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := c.layout.Check(c.origin, c.count, c.memory); (err == nil) != c.ok {
				t.Errorf("Check returned %v", err)
			}
		})
	}
}

func TestElementsOfPartlyFilledItems(t *testing.T) {
	mixed := must(Struct([]Block{{2, 0, float}, {1, 8, doubleChar}, {3, 24, char}})) // 8 + 9 + 3 bytes
	cases := []struct {
		name     string
		layout   *Layout
		bytes    int
		elements int
		ok       bool
	}{
		{"none", mixed, 0, 0, true},
		{"one float", mixed, 4, 1, true},
		{"one float and a half", mixed, 6, 1, false},
		{"floats and double", mixed, 16, 3, true},
		{"all", mixed, 20, 7, true},
		{"two items and a float", mixed, 44, 15, true},
		{"arrays in a struct", must(Struct([]Block{{2, 0, must(Contiguous(3, double))}, {1, 48, float}})), 52 + 16, 9, true},
		{"a vector counts by its elements", must(Hvector(5, 3, 100, double)), 16, 2, true},
		{"truncated element", must(Hvector(5, 3, 100, double)), 17, 2, false},
		{"a type without data", must(Contiguous(0, double)), 8, 1, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			n, ok := c.layout.Elements(c.bytes)
			if ok != c.ok || n != c.elements {
				t.Errorf("got %d, %v; want %d, %v", n, ok, c.elements, c.ok)
			}
		})
	}
}

// A model is the definition of a datatype: the offset of each of its bytes, in order, and its
// bounds.
type model struct {
	bytes  []int
	lb, ub int
	filled bool
	marked bool // whether a part was resized
}

func (m *model) add(n, displacement, stride int, t model) {
	for i := range n {
		at := displacement + i*stride
		for _, b := range t.bytes {
			m.bytes = append(m.bytes, at+b)
		}
		if m.marked && !t.marked {
			continue
		}
		if !m.filled || t.marked && !m.marked {
			m.lb, m.ub, m.filled, m.marked = at+t.lb, at+t.ub, true, t.marked
		}
		m.lb, m.ub = min(m.lb, at+t.lb), max(m.ub, at+t.ub)
	}
}

// random returns a random layout and its model.
func random(r *rand.Rand, depth int) (*Layout, model) {
	if depth == 0 {
		size := []int{1, 2, 4, 8, 16}[r.IntN(5)]
		m := model{ub: size}
		for i := range size {
			m.bytes = append(m.bytes, i)
		}
		return Basic(size), m
	}
	t, m := random(r, depth-1)
	var out model
	switch r.IntN(4) {
	case 0:
		count, block, stride := r.IntN(5), r.IntN(4), r.IntN(200)-60
		var inner model
		inner.add(block, 0, m.ub-m.lb, m)
		out.add(count, 0, stride, inner)
		return must(Hvector(count, block, stride, t)), out
	case 1:
		lb, extent := r.IntN(40)-20, r.IntN(120)-40
		m.lb, m.ub, m.marked = lb, lb+extent, true
		return must(Resized(t, lb, extent)), m
	case 2:
		blocks, displacements := make([]int, r.IntN(5)), make([]int, 5)
		for i := range blocks {
			blocks[i], displacements[i] = r.IntN(4), r.IntN(300)-100
			out.add(blocks[i], displacements[i], m.ub-m.lb, m)
		}
		return must(Hindexed(blocks, displacements[:len(blocks)], t)), out
	}
	sizes, subsizes, starts := make([]int, 2), make([]int, 2), make([]int, 2)
	for i := range sizes {
		sizes[i] = 1 + r.IntN(4)
		subsizes[i] = 1 + r.IntN(sizes[i])
		starts[i] = r.IntN(sizes[i] - subsizes[i] + 1)
	}
	extent := m.ub - m.lb
	for y := range subsizes[0] {
		out.add(subsizes[1], ((starts[0]+y)*sizes[1]+starts[1])*extent, extent, m)
	}
	out.lb, out.ub, out.marked = 0, sizes[0]*sizes[1]*extent, true
	return must(Subarray(sizes, subsizes, starts, t)), out
}

// TestLayoutMatchesItsDefinition checks that random nestings of constructors pack the bytes of their
// definition in order, unpack them to their places, and change no other bytes.
func TestLayoutMatchesItsDefinition(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 1000 {
		l, m := random(r, r.IntN(4))
		if len(m.bytes) > 4000 {
			continue
		}
		if l.Size() != len(m.bytes) || m.filled && l.Extent() != m.ub-m.lb {
			t.Fatalf("seed %d: got size %d, extent %d; want %d, %d", seed, l.Size(), l.Extent(), len(m.bytes), m.ub-m.lb)
		}
		tryOut(t, r, l, m.bytes)
		if t.Failed() {
			t.Fatalf("seed %d, segments %v", seed, l.segments)
		}
	}
}

func tryOut(t *testing.T, r *rand.Rand, l *Layout, offsets []int) {
	count := r.IntN(4)
	memory := make([]byte, 1<<14)
	for i := range memory {
		memory[i] = byte(r.Uint32())
	}
	origin := len(memory) / 2
	if l.Check(origin, count, len(memory)) != nil {
		return
	}
	var want []byte
	for i := range count {
		for _, b := range offsets {
			want = append(want, memory[origin+i*l.Extent()+b])
		}
	}
	packed := l.Append([]byte("x"), memory, origin, count)
	if !bytes.Equal(packed[1:], want) {
		t.Errorf("%d items were packed to %v, want %v", count, packed[1:], want)
	}
	if at, n, ok := l.Run(count); ok && !bytes.Equal(memory[origin+at:origin+at+n], want) {
		t.Errorf("run of %d items: %d bytes at %d", count, n, at)
	}
	message := want[:r.IntN(len(want)+1)] // a message may be shorter than the items
	blank, expected := make([]byte, len(memory)), make([]byte, len(memory))
	for i, b := range message {
		expected[origin+i/max(1, l.Size())*l.Extent()+offsets[i%len(offsets)]] = b
	}
	if n := l.Unpack(blank, origin, count, message); n != len(message) || !bytes.Equal(blank, expected) {
		t.Errorf("Unpack used %d of %d bytes for %d items", n, len(message), count)
	}
}

// FuzzUnpack checks that Unpack of a message of any length changes only the bytes of the items, and
// that packing them returns the same message.
func FuzzUnpack(f *testing.F) {
	f.Add(uint64(1), []byte("12345678"))
	f.Add(uint64(7), []byte{})
	f.Add(uint64(99), bytes.Repeat([]byte{1, 2, 3}, 100))
	f.Fuzz(func(t *testing.T, seed uint64, message []byte) {
		r := rand.New(rand.NewPCG(seed, 1))
		l, m := random(r, r.IntN(4))
		if len(m.bytes) > 4000 {
			return
		}
		count := r.IntN(5)
		memory := make([]byte, 1<<14)
		if l.Check(len(memory)/2, count, len(memory)) != nil {
			return
		}
		n := l.Unpack(memory, len(memory)/2, count, message)
		if n != min(len(message), count*l.Size()) {
			t.Errorf("Unpack used %d of %d bytes for %d items of %d", n, len(message), count, l.Size())
		}
		sorted := slices.Sorted(slices.Values(m.bytes))
		if count > 1 || len(slices.Compact(sorted)) < len(m.bytes) {
			return // if items overlap, the later byte takes precedence
		}
		if again := l.Append(nil, memory, len(memory)/2, count); !bytes.Equal(again[:n], message[:n]) {
			t.Errorf("Append does not return the bytes that were unpacked")
		}
	})
}

// BenchmarkAppend compares the cost of patterns with that of a plain copy of the same number of
// bytes.
func BenchmarkAppend(b *testing.B) {
	const bytes = 1 << 20
	patterns := map[string]*Layout{
		"contiguous":           must(Contiguous(bytes/8, double)),
		"blocks of 64 doubles": must(Hvector(bytes/512, 64, 1024, double)),
		"blocks of 8 doubles":  must(Hvector(bytes/64, 8, 128, double)),
		"every second double":  must(Hvector(bytes/8, 1, 16, double)),
		"struct of 12 in 16":   must(Contiguous(bytes/12, must(Resized(must(Contiguous(3, float)), 0, 16)))),
	}
	memory, dst := make([]byte, 2*bytes), make([]byte, 0, bytes)
	for name, l := range patterns {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(l.Size()))
			for b.Loop() {
				dst = l.Append(dst[:0], memory, 0, 1)
			}
		})
	}
}

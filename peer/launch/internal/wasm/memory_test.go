package wasm

import (
	"math"
	"testing"
)

func TestDivide(t *testing.T) {
	const mib = 1 << 20
	for _, tc := range []struct {
		memory, code uint64
		pages        uint32
		runner       int64
	}{
		{0, 5 * mib, maxPages, math.MaxInt64},
		{512 * mib, 4 * mib, (512 - 48 - 8) * mib / pageSize, 56 * mib},
		{64 * mib, 4 * mib, 32 * mib / pageSize, 32 * mib},
		{512 * mib, 1 << 40, 256 * mib / pageSize, 256 * mib},
		{1, 0, 1, 0},
		{1 << 40, 0, maxPages, 48 * mib},
	} {
		if pages, runner := divide(tc.memory, tc.code); pages != tc.pages || runner != tc.runner {
			t.Errorf("%d bytes, code of %d: %d pages and %d bytes, want %d and %d", tc.memory, tc.code, pages, runner, tc.pages, tc.runner)
		}
	}
}

func TestLinearMemoryDoesNotMove(t *testing.T) {
	m := newLinear(0, 10*pageSize)
	defer m.Free()
	first := m.Reallocate(pageSize)
	first[0] = 7
	for pages := uint64(2); pages <= 10; pages++ {
		b := m.Reallocate(pages * pageSize)
		if uint64(len(b)) != pages*pageSize || &b[0] != &first[0] || b[0] != 7 || b[len(b)-1] != 0 {
			t.Fatalf("%d pages: %d bytes elsewhere", pages, len(b))
		}
		b[len(b)-1] = 1
	}
	if m.Reallocate(11*pageSize) != nil {
		t.Error("more than there may be")
	}
}

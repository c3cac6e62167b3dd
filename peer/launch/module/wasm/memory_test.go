package wasm

import (
	"context"
	"math"
	"runtime/debug"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

func TestDivide(t *testing.T) {
	const mib = 1 << 20
	for _, tc := range []struct {
		memory, module uint64
		pages          uint32
		runner         int64
	}{
		{0, 5 * mib, maxPages, math.MaxInt64},
		{512 * mib, 4 * mib, (512 - 48 - 40) * mib / pageSize, 88 * mib},
		{64 * mib, 4 * mib, 32 * mib / pageSize, 32 * mib},
		{512 * mib, 1 << 40, 256 * mib / pageSize, 256 * mib},
		{1, 0, 1, 0},
		{1 << 40, 0, maxPages, 48 * mib},
	} {
		if pages, runner := divide(tc.memory, tc.module); pages != tc.pages || runner != tc.runner {
			t.Errorf("%d bytes, a module of %d: %d pages and %d bytes, want %d and %d", tc.memory, tc.module, pages, runner, tc.pages, tc.runner)
		}
	}
}

func TestLinearMemoryDoesNotMove(t *testing.T) {
	m := newLinear(0, 10*pageSize)
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
		t.Error("the memory exceeds its maximum size")
	}
}

// exits is a module that calls "receive" of "test", and then exits with 7.
const exits = "\x00asm\x01\x00\x00\x00\x01\x08\x02\x60\x00\x00\x60\x01\x7f\x00" +
	"\x02\x33\x02\x04test\x07receive\x00\x00\x16wasi_snapshot_preview1\x09proc_exit\x00\x01" +
	"\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x02" +
	"\x0a\x0a\x01\x08\x00\x10\x00\x41\x07\x10\x01\x0b"

// TestMessageAfterTheModulesExit checks that a message may arrive in a buffer of a module that has ended,
// and that the module keeps its own exit status.
func TestMessageAfterTheModulesExit(t *testing.T) {
	ctx := experimental.WithMemoryAllocator(context.Background(), experimental.MemoryAllocatorFunc(newLinear))
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		t.Fatal(err)
	}
	var buffer []byte
	_, err := r.NewHostModuleBuilder("test").NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, _ []uint64) {
		buffer, _ = m.Memory().Read(0, pageSize)
	}), nil, nil).Export("receive").Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Instantiate(ctx, []byte(exits))
	if got := status(err); got != 7 {
		t.Errorf("exit status %d: %v", got, err)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if n := copy(buffer, "a message"); string(buffer[:n]) != "a message" || len(buffer) != pageSize {
		t.Errorf("read %q from a buffer of %d bytes", buffer[:n], len(buffer))
	}
}

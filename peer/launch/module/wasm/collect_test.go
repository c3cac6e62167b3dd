package wasm

import (
	"context"
	"encoding/binary"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// computes is a module that calls "ready" of "test". It then computes until the first word of its memory is
// not 0. After ten seconds it gives up, and sets that word to 2.
const computes = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x02\x0e\x01\x04test\x05ready\x00\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01" +
	"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x01" +
	"\x0a0\x01\x2e\x01\x01\x7eB\x80\xf8\x82\xad\x16\x21\x00\x10\x00\x02\x40\x03\x40A\x00\x28\x02\x00\x0d\x01\x20\x00B\x01\x7d\x22\x00B\x00R\x0d\x00\x0bA\x00A\x026\x02\x00\x0b\x0b"

// cycles returns the number of garbage collections so far.
func cycles() uint64 {
	sample := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// garbage prevents the compiler from optimizing the allocation away.
var garbage []byte

// TestComputingModuleDoesNotBlockOthers creates garbage while a module computes. The rest of the process
// continues, and the garbage is collected in the module's next call.
func TestComputingModuleDoesNotBlockOthers(t *testing.T) {
	c := startCollector()
	defer c.end()
	litter := func() {
		for range 64 {
			garbage = make([]byte, 1<<20)
		}
	}
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	memory := make(chan api.Memory)
	collected := false
	_, err := r.NewHostModuleBuilder("test").NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, _ []uint64) {
		c.outside(func() {
			before := cycles()
			litter()
			for deadline := time.Now().Add(time.Minute); !collected && time.Now().Before(deadline); time.Sleep(time.Millisecond) { // interval between polls
				collected = cycles() > before
			}
		})
		memory <- m.Memory()
	}), nil, nil).Export("ready").Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { // ends with the module
		_, err := r.Instantiate(ctx, []byte(computes))
		ended <- err
	}()
	m := <-memory
	before := cycles()
	litter()
	time.Sleep(2 * often) // time for the collector to check
	during := cycles() - before
	word, _ := m.Read(0, 4)
	binary.LittleEndian.PutUint32(word, 1)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if binary.LittleEndian.Uint32(word) != 1 || during != 0 {
		t.Errorf("other goroutines were blocked until the module ended: %d collections", during)
	}
	if !collected {
		t.Error("no garbage was collected while the module was in a call")
	}
}

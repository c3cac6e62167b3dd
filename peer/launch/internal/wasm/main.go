package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/p2pmpi/p2pmpi/mpj/hostcall"
)

// Exit statuses of the runner beside those of modules.
const (
	exitTrap    = 134 // the module did what no module may; as of a native program that aborts
	exitUnfit   = 126 // the module cannot be run
	exitNoOrder = 64
	exitLost    = 70 // the peer is gone
)

// Main does the work of a runner if this process was started as one; its caller then
// exits with the status.
func Main() (status int, ours bool) {
	if os.Args[0] != Name {
		return 0, false
	}
	c, args, err := parse(os.Args[1:])
	if err != nil {
		return tell(exitNoOrder, err), true
	}
	return run(context.Background(), c, args), true
}

func tell(status int, err error) int {
	fmt.Fprintln(os.Stderr, Name+":", err)
	return status
}

// run runs the module to its end.
func run(ctx context.Context, c Config, args []string) int {
	if err := os.RemoveAll(compiled); err != nil { // inputs of that name are not to be executed
		return tell(exitUnfit, err)
	}
	read := unpack
	if c.Compile {
		read = io.ReadAll
	}
	binary, err := read(os.Stdin)
	if err != nil {
		return tell(exitUnfit, fmt.Errorf("read the module: %w", err))
	}
	r, err := newRuntime(ctx, c)
	if err != nil {
		return tell(exitUnfit, err)
	}
	ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(newLinear))
	module, err := r.CompileModule(ctx, binary)
	if err != nil {
		return tell(exitUnfit, err)
	}
	if c.Compile {
		return 0
	}
	if err := os.RemoveAll(compiled); err != nil { // it is in memory now
		return tell(exitUnfit, err)
	}
	return execute(ctx, r, module, c, args)
}

// compiled is where what a module was compiled to lies, in the current folder.
const compiled = ".p2pmpi-compiled"

// newRuntime returns an engine that has, with its module, what the slot has of memory.
func newRuntime(ctx context.Context, c Config) (wazero.Runtime, error) {
	input, err := os.Stdin.Stat()
	if err != nil {
		return nil, err
	}
	cache, err := wazero.NewCompilationCacheWithDir(compiled)
	if err != nil {
		return nil, err
	}
	pages, own := divide(c.Memory, uint64(input.Size()))
	if !c.Compile { // which has all of the slot, and had better end than collect garbage all the time
		debug.SetMemoryLimit(own)
	}
	return wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(cache).WithMemoryLimitPages(pages)), nil
}

func execute(ctx context.Context, r wazero.Runtime, module wazero.CompiledModule, c Config, args []string) int {
	clock, random := newClock(c.Created), newRandom(c.Seed)
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return tell(exitUnfit, err)
	}
	var memory api.Memory
	process := hostcall.New(hostcall.Config{
		Memory:  func(at, size uint32) ([]byte, bool) { return memory.Read(at, size) },
		Told:    clock.reach,
		Waited:  clock.pass,
		Lost:    lost,
		Save:    func() []byte { return saveState(clock, random) },
		Restore: func(b []byte) error { return restoreState(clock, random, b) },
	})
	defer process.Close()
	collector := startCollector()
	defer collector.end()
	if err := offer(ctx, r, process, collector, &memory); err != nil {
		return tell(exitUnfit, err)
	}
	config := wazero.NewModuleConfig().WithName("").WithArgs(args...).
		WithStdout(os.Stdout).WithStderr(os.Stderr).
		WithFSConfig(newScratch(".")).WithRandSource(random).
		WithWalltime(clock.walltime, tick).WithNanotime(clock.nanotime, tick).
		WithNanosleep(func(ns int64) { collector.outside(func() { clock.sleep(ns) }) })
	for _, v := range environment() {
		config = config.WithEnv(v[0], v[1])
	}
	_, err := r.InstantiateModule(ctx, module, config)
	return status(err)
}

// status is what the module has ended with.
func status(err error) int {
	var exit *sys.ExitError
	var fault hostcall.Fault
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit.ExitCode() & 0xff)
	case errors.As(err, &fault):
		return tell(exitTrap, fmt.Errorf("the module was ended: it calls its host with %w", fault))
	}
	return tell(exitTrap, fmt.Errorf("the module was ended: %w", err))
}

func lost(err error) {
	os.Exit(tell(exitLost, fmt.Errorf("this process ends with its peer: %w", err)))
}

// offer gives modules the functions of package hostcall.
func offer(ctx context.Context, r wazero.Runtime, p *hostcall.Process, c *collector, memory *api.Memory) error {
	host := r.NewHostModuleBuilder(hostcall.Name)
	for i := range hostcall.Functions {
		f := &hostcall.Functions[i]
		var results []api.ValueType
		if f.Returns {
			results = []api.ValueType{api.ValueTypeI32}
		}
		host.NewFunctionBuilder().WithName(f.Name).WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, stack []uint64) {
			if *memory == nil {
				*memory = m.Memory()
			}
			c.outside(func() { p.Call(f, stack) })
		}), types(f.Params), results).Export(f.Name)
	}
	_, err := host.Instantiate(ctx)
	return err
}

func types(params string) []api.ValueType {
	out := make([]api.ValueType, len(params))
	for i, p := range params {
		out[i] = api.ValueTypeI32
		if p == 'I' {
			out[i] = api.ValueTypeI64
		}
	}
	return out
}

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/p2pmpi/p2pmpi/mpj/hostcall"
)

// wazeroEngine is wazero, configured like the peers' runner.
type wazeroEngine struct{}

func (wazeroEngine) compile(folder string) error {
	_, _, err := wazeroEngine{}.load(context.Background(), folder)
	return err
}

// load returns the compiled module, from the cache of an earlier compilation if there is one.
func (wazeroEngine) load(ctx context.Context, folder string) (wazero.Runtime, wazero.CompiledModule, error) {
	cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(folder, "wazero"))
	if err != nil {
		return nil, nil, err
	}
	const page = 64 << 10
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(cache).
		WithMemoryLimitPages(maxMemory/page).WithMemoryCapacityFromMax(true))
	binary, err := readModule(folder)
	if err != nil {
		return nil, nil, err
	}
	module, err := r.CompileModule(ctx, binary)
	return r, module, err
}

func (e wazeroEngine) run(folder string, args []string, p *process) (int, error) {
	ctx := context.Background()
	r, module, err := e.load(ctx, folder)
	if err != nil {
		return 0, err
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return 0, err
	}
	if err := offer(ctx, r, p); err != nil {
		return 0, err
	}
	config := wazero.NewModuleConfig().WithName("").WithArgs(append([]string{"module"}, args...)...).
		WithStdout(os.Stdout).WithStderr(os.Stderr).WithFSConfig(wazero.NewFSConfig().WithDirMount(".", "/")).
		WithSysWalltime().WithSysNanotime().WithSysNanosleep()
	_, err = r.InstantiateModule(ctx, module, config)
	var exit *sys.ExitError
	if errors.As(err, &exit) {
		return int(exit.ExitCode()), nil
	}
	return 0, err
}

// offer defines the functions of package hostcall for the module.
func offer(ctx context.Context, r wazero.Runtime, p *process) error {
	host := r.NewHostModuleBuilder(hostcall.Name)
	for i := range hostcall.Functions {
		f := &hostcall.Functions[i]
		var params, results []api.ValueType
		for _, t := range f.Params {
			params = append(params, map[rune]api.ValueType{'i': api.ValueTypeI32, 'I': api.ValueTypeI64}[t])
		}
		if f.Returns {
			results = []api.ValueType{api.ValueTypeI32}
		}
		host.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, stack []uint64) {
			if p.read == nil {
				p.read = m.Memory().Read
			}
			p.Call(f, stack)
		}), params, results).Export(f.Name)
	}
	_, err := host.Instantiate(ctx)
	return err
}

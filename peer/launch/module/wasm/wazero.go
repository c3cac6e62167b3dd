package wasm

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/p2pmpi/p2pmpi/mpj/hostcall"
)

// Wazero is the engine that every peer has. It is pure Go.
type Wazero struct{}

// Name implements Engine.
func (Wazero) Name() string { return EngineName("wazero", "github.com/tetratelabs/wazero", 2) }

// Load implements Engine.
func (Wazero) Load(ctx context.Context, binary []byte, folder string, pages uint32) (Module, error) {
	cache, err := wazero.NewCompilationCacheWithDir(folder)
	if err != nil {
		return nil, err
	}
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCoreFeatures(features).WithCompilationCache(cache).WithMemoryLimitPages(pages))
	compiled, err := r.CompileModule(ctx, binary)
	return wazeroModule{r, compiled}, err
}

// features are the WebAssembly features that modules may use: version 2.0 and, as in other engines,
// extended constant expressions.
const features = api.CoreFeaturesV2 | experimental.CoreFeaturesExtendedConst

// A wazeroModule is a Module.
type wazeroModule struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

func (m wazeroModule) Run(ctx context.Context, h *Host) error {
	ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(newLinear))
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, m.runtime); err != nil {
		return err
	}
	collector := startCollector()
	defer collector.end()
	if err := m.offer(ctx, h, collector); err != nil {
		return err
	}
	_, err := m.runtime.InstantiateModule(ctx, m.compiled, h.system(collector.outside))
	return err
}

// offer provides the functions of package hostcall to the module.
func (m wazeroModule) offer(ctx context.Context, h *Host, c *collector) error {
	host := m.runtime.NewHostModuleBuilder(hostcall.Name)
	for i := range hostcall.Functions {
		f := &hostcall.Functions[i]
		host.NewFunctionBuilder().WithName(f.Name).WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, stack []uint64) {
			if h.memory == nil {
				h.memory = m.Memory().Read
			}
			c.outside(func() { h.process.Call(f, stack) })
		}), types(f.Params), results(f)).Export(f.Name)
	}
	_, err := host.Instantiate(ctx)
	return err
}

func results(f *hostcall.Function) []api.ValueType {
	if !f.Returns {
		return nil
	}
	return []api.ValueType{api.ValueTypeI32}
}

// types returns the types of parameters in the notation of package hostcall.
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

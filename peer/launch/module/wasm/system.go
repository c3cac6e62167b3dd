package wasm

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/p2pmpi/p2pmpi/mpj/hostcall"
)

// An Import is a function that modules may import.
type Import struct {
	Module, Name string
	Params       string // parameter types: i for i32, I for i64
	Returns      bool   // the function returns an i32
	Waits        bool   // a call may take long, because it waits for a message or sleeps
	// Call performs a call. The stack has a word for each argument; the result replaces the first word. An
	// error ends the module: Run returns it.
	Call func(stack []uint64) error
}

// Imports returns all functions that modules may import, for an engine that provides them itself. memory
// returns the module's current memory, which is empty at first. The memory must not move.
//
// The system functions (WASI) are wazero's own, called through a wazero module that uses the other module's
// memory. A module therefore sees the same system in all engines, so replicas in different engines agree.
// Access restrictions are also implemented only once.
func (h *Host) Imports(ctx context.Context, memory func() []byte) ([]Import, error) {
	h.memory = func(at, size uint32) ([]byte, bool) {
		all := memory()
		if uint64(at)+uint64(size) > uint64(len(all)) {
			return nil, false
		}
		return all[at:][:size:size], true
	}
	out, err := h.systemImports(ctx, memory)
	for i := range hostcall.Functions {
		f := &hostcall.Functions[i]
		out = append(out, Import{hostcall.Name, f.Name, f.Params, f.Returns, f.Name == "next", func(stack []uint64) error { return h.call(f, stack) }})
	}
	return out, err
}

// call performs a call of package hostcall.
func (h *Host) call(f *hostcall.Function, stack []uint64) (err error) {
	defer func() {
		if p := recover(); p != nil {
			fault, ok := p.(hostcall.Fault)
			if !ok {
				panic(p)
			}
			err = fault
		}
	}()
	h.process.Call(f, stack)
	return nil
}

// systemImports returns the system functions. Wazero's interpreter forwards the calls, so nothing needs to
// be compiled.
func (h *Host) systemImports(ctx context.Context, memory func() []byte) ([]Import, error) {
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	system, err := wasi_snapshot_preview1.NewBuilder(r).Compile(ctx)
	if err != nil {
		return nil, err
	}
	var functions []api.FunctionDefinition
	for _, f := range system.ExportedFunctions() {
		functions = append(functions, f)
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return nil, err
	}
	ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return mirror(memory) }))
	compiled, err := r.CompileModule(ctx, forwardingModule(functions))
	if err != nil {
		return nil, err
	}
	p, err := r.InstantiateModule(ctx, compiled, h.system(func(call func()) { call() }))
	if err != nil {
		return nil, fmt.Errorf("system interface: %w", err)
	}
	out := make([]Import, len(functions))
	pages := 0 // memory size of the forwarding module
	for i, f := range functions {
		enter := p.ExportedFunction(f.Name())
		out[i] = Import{wasi_snapshot_preview1.ModuleName, f.Name(), typeLetters(f.ParamTypes()), len(f.ResultTypes()) > 0, f.Name() == "poll_oneoff", func(stack []uint64) error {
			if now := len(memory()) / pageSize; now > pages {
				p.Memory().Grow(uint32(now - pages))
				pages = now
			}
			return enter.CallWithStack(ctx, stack)
		}}
	}
	return out, nil
}

// typeLetters returns the types of parameters in the notation of package hostcall. It is the inverse of types.
func typeLetters(types []api.ValueType) string {
	out := make([]byte, len(types))
	for i, t := range types {
		out[i] = 'i'
		if t == api.ValueTypeI64 {
			out[i] = 'I'
		}
	}
	return string(out)
}

// A mirror is another module's memory, used as a module's own.
type mirror func() []byte

func (m mirror) Reallocate(size uint64) []byte { return m()[:size:size] }

// Free implements experimental.LinearMemory. It does nothing, since the memory belongs to the other module.
func (mirror) Free() {}

// forwardingModule returns a module whose exported functions call the imported functions of the same names.
func forwardingModule(functions []api.FunctionDefinition) []byte {
	var types, imports, kinds, exports, bodies [][]byte
	for i, f := range functions {
		types = append(types, append(append([]byte{0x60}, counted(f.ParamTypes())...), counted(f.ResultTypes())...))
		imports = append(imports, append(append(counted([]byte(wasi_snapshot_preview1.ModuleName)), counted([]byte(f.Name()))...), index(0, i)...))
		kinds = append(kinds, index(i))
		exports = append(exports, append(counted([]byte(f.Name())), index(0, len(functions)+i)...))
		body := []byte{0} // no local variables
		for p := range f.ParamTypes() {
			body = append(body, index(localGet, p)...)
		}
		bodies = append(bodies, counted(append(append(body, index(call, i)...), end)))
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []struct {
		id  byte
		all [][]byte
	}{{1, types}, {2, imports}, {3, kinds}, {5, [][]byte{index(1, 0, maxPages)}}, {7, exports}, {10, bodies}} {
		contents := index(len(s.all))
		for _, one := range s.all {
			contents = append(contents, one...)
		}
		out = append(append(out, s.id), counted(contents)...)
	}
	return out
}

// Opcodes of WebAssembly.
const (
	call     = 0x10
	localGet = 0x20
	end      = 0x0b
)

// index encodes numbers as WebAssembly does.
func index(numbers ...int) (out []byte) {
	for _, n := range numbers {
		out = binary.AppendUvarint(out, uint64(n))
	}
	return out
}

// counted prefixes bytes with their length.
func counted(b []byte) []byte { return append(index(len(b)), b...) }

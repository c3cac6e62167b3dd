package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/bytecodealliance/wasmtime-go/v39"

	"github.com/p2pmpi/p2pmpi/mpj/hostcall"
)

// wasmtimeEngine is wasmtime with its optimizing compiler.
type wasmtimeEngine struct{}

func (wasmtimeEngine) engine() *wasmtime.Engine {
	config := wasmtime.NewConfig()
	config.SetCraneliftOptLevel(wasmtime.OptLevelSpeed)
	return wasmtime.NewEngineWithConfig(config)
}

const wasmtimeFile = "module.cwasm"

func (e wasmtimeEngine) compile(folder string) error {
	binary, err := readModule(folder)
	if err != nil {
		return err
	}
	module, err := wasmtime.NewModule(e.engine(), binary)
	if err != nil {
		return err
	}
	code, err := module.Serialize()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, wasmtimeFile), code, 0o600)
}

func (e wasmtimeEngine) run(folder string, args []string, p *process) (int, error) {
	engine := e.engine()
	module, err := wasmtime.NewModuleDeserializeFile(engine, filepath.Join(folder, wasmtimeFile))
	if err != nil {
		return 0, err
	}
	wasi := wasmtime.NewWasiConfig()
	wasi.SetArgv(append([]string{"module"}, args...))
	wasi.InheritStdout()
	wasi.InheritStderr()
	if err := wasi.PreopenDir(".", "/", wasmtime.DIR_READ|wasmtime.DIR_WRITE, wasmtime.FILE_READ|wasmtime.FILE_WRITE); err != nil {
		return 0, err
	}
	store := wasmtime.NewStore(engine)
	store.SetWasi(wasi)
	store.Limiter(maxMemory, -1, -1, -1, -1)
	linker := wasmtime.NewLinker(engine)
	if err := errors.Join(linker.DefineWasi(), link(linker, p)); err != nil {
		return 0, err
	}
	instance, err := linker.Instantiate(store, module)
	if err != nil {
		return 0, err
	}
	memory := instance.GetExport(store, "memory").Memory()
	p.read = func(at, size uint32) ([]byte, bool) {
		all := memory.UnsafeData(store)
		if uint64(at)+uint64(size) > uint64(len(all)) {
			return nil, false
		}
		return all[at:][:size:size], true
	}
	_, err = instance.GetFunc(store, "_start").Call(store)
	var exit *wasmtime.Error
	if errors.As(err, &exit) {
		if status, ok := exit.ExitStatus(); ok {
			return int(status), nil
		}
	}
	return 0, err
}

// link defines the functions of package hostcall for modules.
func link(l *wasmtime.Linker, p *process) error {
	for i := range hostcall.Functions {
		f := &hostcall.Functions[i]
		var params, results []*wasmtime.ValType
		for _, t := range f.Params {
			params = append(params, wasmtime.NewValType(map[rune]wasmtime.ValKind{'i': wasmtime.KindI32, 'I': wasmtime.KindI64}[t]))
		}
		if f.Returns {
			results = append(results, wasmtime.NewValType(wasmtime.KindI32))
		}
		call := func(_ *wasmtime.Caller, args []wasmtime.Val) ([]wasmtime.Val, *wasmtime.Trap) {
			stack := make([]uint64, len(args)+1)
			for i, a := range args {
				if a.Kind() == wasmtime.KindI64 {
					stack[i] = uint64(a.I64())
				} else {
					stack[i] = uint64(uint32(a.I32()))
				}
			}
			p.Call(f, stack)
			if !f.Returns {
				return nil, nil
			}
			return []wasmtime.Val{wasmtime.ValI32(int32(stack[0]))}, nil
		}
		if err := l.FuncNew(hostcall.Name, f.Name, wasmtime.NewFuncType(params, results), call); err != nil {
			return err
		}
	}
	return nil
}

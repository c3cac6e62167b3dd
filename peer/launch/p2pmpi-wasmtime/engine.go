//go:build linux && amd64 && cgo

package main

// #cgo CFLAGS: -std=c11 -O2 -Wall -U_FORTIFY_SOURCE
// #include "module.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	_ "github.com/bytecodealliance/wasmtime-go/v39" // the library

	"github.com/p2pmpi/p2pmpi/peer/launch/internal/wasm"
)

// wasmtime is the engine.
type wasmtime struct{}

// configuration is the number of what module.c makes of the library: see wasm.EngineName.
const configuration = 1

// Name implements wasm.Engine.
func (wasmtime) Name() string {
	return wasm.EngineName("wasmtime", "github.com/bytecodealliance/wasmtime-go/v39", configuration)
}

// codeFile is what a module was compiled to, in its folder.
const codeFile = "code"

// Load implements wasm.Engine. The library knows what it has compiled itself, in this version and
// for this processor, and takes nothing else.
func (wasmtime) Load(_ context.Context, binary []byte, folder string, pages uint32) (wasm.Module, error) {
	C.module_memory.most = C.size_t(pages) * pageSize
	path := filepath.Join(folder, codeFile)
	if code, err := os.ReadFile(path); err == nil && load(code) == nil {
		return module{}, nil
	}
	code, err := compile(binary)
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, code, 0o600)
	}
	return module{}, err
}

// pageSize is that of WebAssembly, in bytes.
const pageSize = 64 << 10

func load(code []byte) error {
	return failed(C.module_load((*C.uint8_t)(unsafe.SliceData(code)), C.size_t(len(code))))
}

func compile(binary []byte) ([]byte, error) {
	var code *C.uint8_t
	var size C.size_t
	if err := failed(C.module_compile((*C.uint8_t)(unsafe.SliceData(binary)), C.size_t(len(binary)), &code, &size)); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(code), size), nil // until the process ends, which is soon
}

// maxReason bounds what is said of a failure, in bytes: a module's names are as long as it
// likes, and so is the list of the functions that it was in, which comes before the cause.
const maxReason = 2 << 10

// failed returns the error that a text of the library says, if there is one.
func failed(text *C.char) error {
	if text == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(text))
	where, cause, found := strings.Cut(C.GoString(text), "\n\nCaused by:")
	if found {
		where = strings.TrimSpace(cause) + "\n" + where
	}
	if len(where) > maxReason {
		where = strings.ToValidUTF8(where[:maxReason], "") + " ..."
	}
	return errors.New(where)
}

// A module is that which was loaded, of which there is one.
type module struct{}

// Run implements wasm.Module.
func (module) Run(ctx context.Context, h *wasm.Host) error {
	functions, err := h.Imports(ctx, memory)
	if err != nil {
		return err
	}
	for i, f := range functions {
		if err := define(i, f); err != nil {
			return err
		}
	}
	runtime.LockOSThread() // on which the library has what belongs to the module
	defer runtime.UnlockOSThread()
	C.module_instantiate()
	if err := finish(functions); err != nil {
		return err
	}
	if !C.module_start() {
		return nil
	}
	return finish(functions)
}

// memory returns the module's memory as it is now.
func memory() []byte { return unsafe.Slice((*byte)(C.module_memory.at), C.module_memory.size) }

func define(i int, f wasm.Import) error {
	var texts [3]*C.char
	for i, s := range []string{f.Module, f.Name, f.Params} {
		texts[i] = C.CString(s)
		defer C.free(unsafe.Pointer(texts[i]))
	}
	return failed(C.module_define(C.int(i), texts[0], texts[1], texts[2], C.bool(f.Returns), C.bool(f.Waits)))
}

// call makes a call of the module. Who waits long does so without the thread: otherwise to wake him
// would take two threads.
func call(f wasm.Import, stack []uint64) error {
	if f.Waits {
		runtime.UnlockOSThread()
		defer runtime.LockOSThread()
	}
	return f.Call(stack)
}

// finish has the module go on to its end, and makes its calls. Once a call has ended it, it is
// left where it is: the process ends.
func finish(functions []wasm.Import) error {
	stack := unsafe.Slice((*uint64)(&C.module_stack[0]), C.WORDS)
	for {
		i := C.module_resume()
		if i < 0 {
			return failed(C.module_failed())
		}
		if err := call(functions[i], stack); err != nil {
			return err
		}
	}
}

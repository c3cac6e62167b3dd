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

	"github.com/p2pmpi/p2pmpi/peer/launch/module/wasm"
)

// wasmtime implements wasm.Engine.
type wasmtime struct{}

// configuration is the version of the library's configuration in module.c, see wasm.EngineName.
const configuration = 1

// Name implements wasm.Engine.
func (wasmtime) Name() string {
	return wasm.EngineName("wasmtime", "github.com/bytecodealliance/wasmtime-go/v39", configuration)
}

// codeFile is the name of a module's compiled code in its folder.
const codeFile = "code"

// Load implements wasm.Engine. The library accepts only code that it has compiled itself, in this version
// and for this processor.
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

// pageSize is the page size of WebAssembly, in bytes.
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
	return unsafe.Slice((*byte)(code), size), nil // valid until the process ends, which is soon
}

// maxReason bounds the text about a failure, in bytes. A module's names may have any length, and so may the
// stack trace, which precedes the cause.
const maxReason = 2 << 10

// failed converts an error text of the library to an error; nil means no error.
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

// A module is the loaded module. There is only one.
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
	runtime.LockOSThread() // the library keeps the module's state in thread-local storage
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

// call performs a call of the module. A call that may wait long unlocks the thread first: with a locked
// thread, each wake-up would need two threads.
func call(f wasm.Import, stack []uint64) error {
	if f.Waits {
		runtime.UnlockOSThread()
		defer runtime.LockOSThread()
	}
	return f.Call(stack)
}

// finish runs the module to its end, and performs its calls. If a call ends the module, its stack is
// abandoned, since the process ends.
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

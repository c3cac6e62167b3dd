package wasm

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/cpu"
)

// An Engine compiles modules and runs them. Its process runs one module.
type Engine interface {
	// Name identifies the engine, its version and the processor for which it compiles. Engines with
	// different names cannot use each other's compiled code. The name is part of a file name.
	Name() string
	// Load returns a module, using the compiled code in the folder. If the code is missing or unusable, Load
	// compiles the module and stores the code there. The module's memory is limited to the given number of
	// pages.
	Load(ctx context.Context, binary []byte, folder string, pages uint32) (Module, error)
}

// A Module is a compiled module.
type Module interface {
	// Run runs the module to its end. The error is a *sys.ExitError of wazero if the module has ended
	// itself, a hostcall.Fault after an invalid call, and otherwise describes the fault of the module.
	Run(ctx context.Context, h *Host) error
}

// EngineName returns an engine's name. Its version is that of the Go module at path. configuration is a
// number that changes whenever the engine's settings change the code that it generates or accepts.
func EngineName(engine, path string, configuration int) string {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == path {
				version = d.Version
			}
		}
	}
	features := sha256.Sum256(fmt.Append(nil, cpu.X86, cpu.ARM64))
	return fmt.Sprintf("%s-%s-%d-%s-%x", engine, version, configuration, runtime.GOARCH, features[:4])
}

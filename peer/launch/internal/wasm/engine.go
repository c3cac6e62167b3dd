package wasm

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/cpu"
)

// An Engine compiles modules, and runs what they were compiled to. Its process runs one.
type Engine interface {
	// Name says which engine it is, of which version, and for which processor: what another
	// one has compiled is of no use to it. It is part of a file's name.
	Name() string
	// Load returns a module with what it was compiled to, which is in the folder. If that is not
	// there, or of no use, the module is compiled, and what comes of it left there. A module
	// has no more than so many pages of memory.
	Load(ctx context.Context, binary []byte, folder string, pages uint32) (Module, error)
}

// A Module is one that is compiled.
type Module interface {
	// Run runs it to its end. The error is a *sys.ExitError of wazero's when it has ended
	// itself, a hostcall.Fault, or says what it did that no module may.
	Run(ctx context.Context, h *Host) error
}

// EngineName returns an engine's name, whose version is that of a Go module. The configuration is a number
// that changes whenever the engine is made to compile, or to take, anything else.
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

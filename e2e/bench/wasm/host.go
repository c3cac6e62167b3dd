package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/p2pmpi/p2pmpi/mpj/hostcall"
)

// An engine runs modules. What belongs to one module is in a folder, with the module
// itself as moduleFile.
type engine interface {
	// compile compiles the module and keeps what comes of it in the folder.
	compile(folder string) error
	// run runs the compiled module to its end and returns its exit status. memory is
	// told the module's memory before any function of p is called.
	run(folder string, args []string, p *process) (status int, err error)
}

var engines = map[string]engine{"wazero": wazeroEngine{}, "wasmtime": wasmtimeEngine{}}

const moduleFile = "module.wasm"

func readModule(folder string) ([]byte, error) { return os.ReadFile(filepath.Join(folder, moduleFile)) }

// maxMemory is what modules may have, in bytes.
const maxMemory = 1 << 30

// A process is a module's part in the job that this process was started for, if it was
// and if the module asks.
type process struct {
	*hostcall.Process
	read func(at, size uint32) ([]byte, bool) // the module's memory
}

func newProcess() *process {
	p := new(process)
	p.Process = hostcall.New(hostcall.Config{
		Memory: func(at, size uint32) ([]byte, bool) { return p.read(at, size) },
		Told:   func(float64) {}, Waited: func(time.Duration) {},
		Lost: func(err error) { fail(fmt.Errorf("the peer is gone: %w", err)) },
	})
	return p
}

// host compiles or runs the module of a folder by an engine: it is what this program does
// when it is started as a contender.
func host(args []string) (status int, err error) {
	if len(args) < 3 {
		return 0, fmt.Errorf("usage: host compile|run ENGINE FOLDER [ARGS]")
	}
	e, ok := engines[args[1]]
	if !ok {
		return 0, fmt.Errorf("there is no engine %q", args[1])
	}
	if args[0] == "compile" {
		return 0, e.compile(args[2])
	}
	p := newProcess()
	defer p.Close()
	return e.run(args[2], args[3:], p)
}

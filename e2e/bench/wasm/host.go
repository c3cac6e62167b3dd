package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/p2pmpi/p2pmpi/mpj/hostcall"
)

// An engine runs modules. Each module has a directory, which contains the module itself as
// moduleFile.
type engine interface {
	// compile compiles the module and keeps the result in the directory.
	compile(folder string) error
	// run runs the compiled module to its end and returns its exit status. It sets p.read to a
	// reader of the module's memory before any function of p is called.
	run(folder string, args []string, p *process) (status int, err error)
}

var engines = map[string]engine{"wazero": wazeroEngine{}, "wasmtime": wasmtimeEngine{}}

const moduleFile = "module.wasm"

func readModule(folder string) ([]byte, error) { return os.ReadFile(filepath.Join(folder, moduleFile)) }

// maxMemory bounds the memory of a module, in bytes.
const maxMemory = 1 << 30

// A process is a module's part in the job for which this process was started, if there is a job and
// the module joins it.
type process struct {
	*hostcall.Process
	read func(at, size uint32) ([]byte, bool) // reads the module's memory
}

func newProcess() *process {
	p := new(process)
	p.Process = hostcall.New(hostcall.Config{
		Memory: func(at, size uint32) ([]byte, bool) { return p.read(at, size) },
		Told:   func(float64) {}, Waited: func(time.Duration) {},
		Lost: func(err error) { fail(fmt.Errorf("the peer has ended: %w", err)) },
	})
	return p
}

// host compiles or runs the module in a directory with an engine. It is the main function of this
// program when it is started as a contender.
func host(args []string) (status int, err error) {
	if len(args) < 3 {
		return 0, fmt.Errorf("usage: host compile|run ENGINE FOLDER [ARGS]")
	}
	e, ok := engines[args[1]]
	if !ok {
		return 0, fmt.Errorf("unknown engine %q", args[1])
	}
	if args[0] == "compile" {
		return 0, e.compile(args[2])
	}
	p := newProcess()
	defer p.Close()
	return e.run(args[2], args[3:], p)
}

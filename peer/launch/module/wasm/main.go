package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/tetratelabs/wazero/sys"

	"github.com/p2pmpi/p2pmpi/mpj/hostcall"
)

// Exit statuses of the runner other than those of modules.
const (
	exitTrap        = 134 // the module made a forbidden operation; as for a native program that aborts
	exitNotRunnable = 126 // the module cannot be run
	exitNoOrder     = 64
	exitLost        = 70 // the peer has ended
)

// Main runs this process as a runner with the given engine, if it was started as one. The caller must then
// exit with the status.
func Main(e Engine) (status int, ours bool) {
	if os.Args[0] != Name {
		return 0, false
	}
	c, args, err := parse(os.Args[1:])
	if err != nil {
		return tell(exitNoOrder, err), true
	}
	return run(context.Background(), e, c, args), true
}

func tell(status int, err error) int {
	fmt.Fprintln(os.Stderr, Name+":", err)
	return status
}

func run(ctx context.Context, e Engine, c Config, args []string) int {
	if err := os.RemoveAll(compiled); err != nil { // input files of that name must not be executed
		return tell(exitNotRunnable, err)
	}
	if c.Examine {
		return examine(ctx, e)
	}
	read := unpack
	if c.Compile {
		read = io.ReadAll
	}
	binary, err := read(os.Stdin)
	if err != nil {
		return tell(exitNotRunnable, fmt.Errorf("read the module: %w", err))
	}
	pages, own := divide(c.Memory, uint64(len(binary)))
	if !c.Compile { // the compiler may use the whole slot, and should rather fail than collect garbage all the time
		debug.SetMemoryLimit(own)
	}
	module, err := e.Load(ctx, binary, compiled, pages)
	if err != nil {
		return tell(exitNotRunnable, err)
	}
	if c.Compile {
		return 0
	}
	if err := os.RemoveAll(compiled); err != nil { // the code is in memory now
		return tell(exitNotRunnable, err)
	}
	h := newHost(c, args)
	defer h.close()
	return status(module.Run(ctx, h))
}

// compiled is the folder of a module's compiled code, in the current folder.
const compiled = ".p2pmpi-compiled"

// status returns the exit status for a module that has ended with err.
func status(err error) int {
	var exit *sys.ExitError
	var fault hostcall.Fault
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit.ExitCode() & 0xff)
	case errors.As(err, &fault):
		return tell(exitTrap, fmt.Errorf("the module was ended: invalid call of the host: %w", fault))
	}
	return tell(exitTrap, fmt.Errorf("the module was ended: %w", err))
}

func lost(err error) {
	os.Exit(tell(exitLost, fmt.Errorf("the peer has ended: %w", err)))
}

package launch

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/internal/supervisor"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/wasm"
)

// An Engine runs the WebAssembly modules of jobs.
type Engine struct {
	// Name is that of the engine, with its version and what processor it compiles for.
	Name    string
	program string // an executable that runs a module, in a home: see package wasm
}

// BuiltIn is the engine that every peer has.
func BuiltIn() Engine { return Engine{wasm.Wazero{}.Name(), supervisor.Own} }

// examineTimeout bounds how long an engine may take to be tried: some ten milliseconds are
// usual.
const examineTimeout = 20 * time.Second

// engineFile is the engine in a home that has another one than that which is built in.
const engineFile = "engine"

// ExamineEngine copies an executable file, at an absolute path, into a home, and tries it as an
// engine within the walls of the peer there. What becomes of the file later is all the same: the peer runs
// what was tried. It takes some ten milliseconds, and a process that begins with Supervise. Only one
// peer may use a home.
func ExamineEngine(home, path string, walls Walls) (Engine, error) {
	home, err := filepath.Abs(home)
	if err != nil {
		return Engine{}, fmt.Errorf("the engine %s: %w", path, err)
	}
	program := filepath.Join(home, engineFile)
	var name string
	if err = copyEngine(path, program); err == nil {
		name, err = examineEngine(home, program, walls)
	}
	if err != nil {
		os.Remove(program)
		return Engine{}, fmt.Errorf("the engine %s: %w", path, err)
	}
	return Engine{name, program}, nil
}

// copyEngine copies a file to where no other name leads, and which everybody may execute who gets there:
// a program may have another user than its peer.
func copyEngine(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(0o555), out.Close())
}

// forgetEngine removes that which an earlier peer has left in a home whose peer has e.
func forgetEngine(home string, e Engine) {
	if kept := filepath.Join(home, engineFile); e.program != kept {
		_ = os.Remove(kept) // it is not there, or does no harm
	}
}

func examineEngine(home, program string, walls Walls) (name string, err error) {
	root := filepath.Join(home, scratchFolder)
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp(root, "engine-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder) // unless its process has
	said, runner, err := startRunner(supervisor.Command{
		Title: "examine the engine", Program: program, As: wasm.Name, Scratch: folder, Walls: walls.Means,
		Args: wasm.Config{Examine: true}.Arguments(nil), Answered: func(bool) {},
	})
	if err != nil {
		return "", err
	}
	defer runner.Close()
	late := time.AfterFunc(examineTimeout, runner.Kill)
	defer late.Stop()
	words := readSome(said)
	exit := runner.Wait()
	switch {
	case exit.Code != 0 && len(words) > 0:
		return "", errors.New(string(words))
	case exit.Code != 0:
		return "", fmt.Errorf("its process ended with %s", cmp.Or(exit.Signal, fmt.Sprintf("status %d", exit.Code)))
	}
	return wasm.Examined(string(words))
}

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

	"github.com/p2pmpi/p2pmpi/peer/launch/module/wasm"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
)

// An Engine runs the WebAssembly modules of jobs.
type Engine struct {
	// Name identifies the engine, its version, and the processor for which it compiles.
	Name    string
	program string // executable in a home that runs a module, see package wasm
}

// BuiltIn returns the engine that every peer has.
func BuiltIn() Engine { return Engine{wasm.Wazero{}.Name(), supervisor.Own} }

// examineTimeout bounds the examination of an engine, which usually takes some ten milliseconds.
const examineTimeout = 20 * time.Second

// engineFile is the name, within a home, of an engine that replaces the built-in one.
const engineFile = "engine"

// ExamineEngine copies an executable file, at an absolute path, into a home, and examines it as an engine
// in that peer's sandbox. Later changes of the original file have no effect, since the peer runs the
// examined copy. The examination takes some ten milliseconds, and a process that begins with Supervise.
// Only one peer may use a home.
func ExamineEngine(home, path string, available Sandbox) (Engine, error) {
	home, err := filepath.Abs(home)
	if err != nil {
		return Engine{}, fmt.Errorf("the engine %s: %w", path, err)
	}
	program := filepath.Join(home, engineFile)
	var name string
	if err = copyEngine(path, program); err == nil {
		name, err = examineEngine(home, program, available)
	}
	if err != nil {
		os.Remove(program)
		return Engine{}, fmt.Errorf("the engine %s: %w", path, err)
	}
	return Engine{name, program}, nil
}

// copyEngine copies a file to a new file without other links. Every user who can reach the file may execute
// it, since a program and its peer may run as different users.
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

// forgetEngine removes the engine that an earlier peer has left in the home, unless e uses it.
func forgetEngine(home string, e Engine) {
	if kept := filepath.Join(home, engineFile); e.program != kept {
		_ = os.Remove(kept) // it does not exist, or is harmless
	}
}

func examineEngine(home, program string, available Sandbox) (name string, err error) {
	root := filepath.Join(home, scratchFolder)
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp(root, "engine-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder) // unless its process has removed it
	said, runner, err := startRunner(supervisor.Command{
		Title: "examine the engine", Program: program, As: wasm.Name, Scratch: folder, Sandbox: available.Means,
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

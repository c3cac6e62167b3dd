package launch

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/internal/supervisor"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/wasm"
)

// An Engine runs the WebAssembly modules of jobs.
type Engine struct {
	// Name is that of the engine, with its version and what processor it compiles for.
	Name    string
	program string // an executable that runs a module: see package wasm
}

// BuiltIn is the engine that every peer has.
func BuiltIn() Engine { return Engine{wasm.Wazero{}.Name(), supervisor.Own} }

// examineTimeout bounds how long an engine may take to be tried: some ten milliseconds are
// usual.
const examineTimeout = 20 * time.Second

// ExamineEngine tries the engine that is an executable file, at an absolute path, within the
// walls of the peer of a home. It takes some ten milliseconds, and a process that begins with
// Supervise.
func ExamineEngine(home, path string, walls Walls) (Engine, error) {
	name, err := examineEngine(home, path, walls)
	if err != nil {
		return Engine{}, fmt.Errorf("the engine %s: %w", path, err)
	}
	return Engine{name, path}, nil
}

// engineName is what engines may be called: it is part of a file's name.
var engineName = regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9._+-]{0,99}$`)

func examineEngine(home, path string, walls Walls) (name string, err error) {
	root, err := filepath.Abs(filepath.Join(home, scratchFolder))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp(root, "engine-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder) // unless its process has
	said, runner, err := startRunner(supervisor.Command{
		Title: "examine " + filepath.Base(path), Program: path, As: wasm.Name, Scratch: folder, Walls: walls.Means,
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
	case !engineName.Match(words):
		return "", fmt.Errorf("it is none: it says %q", words)
	}
	return string(words), nil
}

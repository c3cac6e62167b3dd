package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A workshop is where programs are built and run.
type workshop struct {
	dir  string // directory of all build results
	fast string // directory of the commands with wasmtime
	root string // root of the repository
	self string // path of this program
}

func openWorkshop(ctx context.Context, dir string) (*workshop, error) {
	root, err := command(ctx, "", nil, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/p2pmpi/p2pmpi")
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	w := &workshop{dir: dir, fast: filepath.Join(dir, "fast"), root: string(bytes.TrimSpace(root)), self: self}
	for _, to := range []string{w.dir, w.fast} {
		if _, err := command(ctx, w.root, nil, "go", "build", "-o", to+"/", "./cmd/p2prun"); err != nil {
			return nil, err
		}
	}
	_, err = command(ctx, filepath.Join(w.root, "peer/launch/p2pmpi-wasmtime"), nil, "go", "build", "-o", w.fast+"/")
	return w, err
}

// command runs a program in a directory, with additions to its environment, and returns its output.
func command(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, name, args...)
	var stderr bytes.Buffer
	c.Dir, c.Stderr, c.Env = dir, &stderr, append(os.Environ(), env...)
	out, err := c.Output()
	if err != nil {
		return out, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return out, nil
}

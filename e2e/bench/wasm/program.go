package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// A program is one of the programs in one form.
type program struct {
	name, language string
	engine         string // engine of the module, runner or fastRunner, or empty for a native program
	simd           bool   // built with 128-bit vectors; C only
}

const (
	inC  = "C"
	inGo = "Go"
	// The peers' own runners, in place of an engine.
	runner     = "the peers' runner"
	fastRunner = "the peers' runner, wasmtime"
)

// form returns the name of the program's form.
func (p program) form() string {
	switch {
	case p.engine == "":
		return "native"
	case p.simd:
		return p.engine + ", SIMD"
	}
	return p.engine
}

// path returns the location of the program: a file, or the directory of an engine.
func (p program) path(w *workshop) string {
	path := filepath.Join(w.dir, p.name+"-"+p.language)
	switch {
	case p.ran():
		return path + ".wasm"
	case p.simd:
		return path + "-simd-" + p.engine
	case p.engine != "":
		return path + "-" + p.engine
	}
	return path
}

// ran reports whether the peers' runner runs the program.
func (p program) ran() bool { return p.engine == runner || p.engine == fastRunner }

// build builds the program unless it exists.
func (p program) build(ctx context.Context, w *workshop) (err error) {
	out := p.path(w)
	if _, err := os.Stat(out); err == nil {
		return nil
	}
	defer func() {
		if err != nil {
			os.RemoveAll(p.path(w))
		}
	}()
	if p.engine != "" && !p.ran() {
		if err := os.Mkdir(out, 0o755); err != nil {
			return err
		}
		out = filepath.Join(out, moduleFile)
	}
	if p.language == inC {
		err = p.buildC(ctx, w, out)
	} else {
		err = p.buildGo(ctx, w, out)
	}
	if err == nil && filepath.Base(out) == moduleFile {
		_, err = command(ctx, "", nil, w.self, "host", "compile", p.engine, p.path(w))
	}
	return err
}

func (p program) buildC(ctx context.Context, w *workshop, out string) error {
	compiler := []string{"gcc"}
	if p.engine != "" {
		compiler = []string{"clang", "--target=wasm32-wasi", "-mbulk-memory"}
	}
	if p.simd {
		compiler = append(compiler, "-msimd128")
	}
	own := filepath.Join(w.root, "e2e/bench/wasm/c")
	source := filepath.Join(own, p.name+".c")
	if _, err := os.Stat(source); err != nil {
		source = filepath.Join(w.root, "e2e/bench/c", p.name+".c")
	}
	args := append(compiler[1:], "-std=c99", "-D_POSIX_C_SOURCE=200809L", "-O3", "-I", own, "-o", out, source, "-lm")
	_, err := command(ctx, "", nil, compiler[0], args...)
	return err
}

func (p program) buildGo(ctx context.Context, w *workshop, out string) error {
	env := []string{"CGO_ENABLED=0"}
	if p.engine != "" {
		env = append(env, "GOOS=wasip1", "GOARCH=wasm")
	}
	dir, source := w.root, "./examples/"+p.name
	if p.name == ping {
		dir, source = filepath.Join(w.root, "e2e/bench/wasm"), "./ping"
	}
	_, err := command(ctx, dir, env, "go", "build", "-o", out, source)
	return err
}

// run runs the program and returns its output. A program in Go runs as a job with the given number of ranks.
func (p program) run(ctx context.Context, w *workshop, ranks int, args ...string) ([]byte, error) {
	var options []string
	words := append([]string{p.path(w)}, args...)
	if p.engine != "" && !p.ran() {
		folder := p.path(w)
		if ranks > 0 { // then the job copies it to its working directory
			folder = filepath.Base(folder)
			options = []string{"-i", folder}
		}
		words = append([]string{w.self, "host", "run", p.engine, folder}, args...)
	}
	if ranks > 0 {
		commands := w.dir
		if p.engine == fastRunner {
			commands = w.fast
		}
		words = append(append([]string{filepath.Join(commands, "p2prun"), "--local", "1", "-n", strconv.Itoa(ranks)}, options...), words...)
	}
	return command(ctx, w.dir, nil, words[0], words[1:]...)
}

// recompile compiles the program's module again, and returns the time.
func (p program) recompile(ctx context.Context, w *workshop) (seconds float64, err error) {
	folder, err := os.MkdirTemp(w.dir, "again")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	if err := os.Link(filepath.Join(p.path(w), moduleFile), filepath.Join(folder, moduleFile)); err != nil {
		return 0, err
	}
	begun := time.Now()
	_, err = command(ctx, "", nil, w.self, "host", "compile", p.engine, folder)
	return time.Since(begun).Seconds(), err
}

// start starts the program without work, and returns the time until the program ends.
func (p program) start(ctx context.Context, w *workshop) (seconds float64, err error) {
	begun := time.Now()
	if _, err = p.run(ctx, w, 0); err != nil {
		return 0, fmt.Errorf("start %s: %w", p.name, err)
	}
	return time.Since(begun).Seconds(), nil
}

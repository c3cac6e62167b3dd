package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/peer/launch"
)

// A Program is the program to run, before its platforms are known.
type Program struct {
	Name string // for display

	// TrimPath removes the names of this machine's folders from built executables. The first build with TrimPath
	// has to compile the standard library again.
	TrimPath bool

	file     string          // an executable or a module, or empty for a package
	platform submit.Platform // of file
	dir      string          // folder in which pkg is built
	pkg      string          // a Go package, in the form that go build accepts
}

// Local is the platform of this machine, and Wasm that of WebAssembly modules.
var (
	Local = submit.Platform{OS: runtime.GOOS, Arch: runtime.GOARCH}
	Wasm  = submit.Platform{OS: jobspec.WasmOS, Arch: jobspec.WasmArch}
)

// Find finds the program that arg names. It looks for a file or the folder of a Go package, then, if arg
// contains no slash, for an executable in PATH, and otherwise for a Go package by its import path.
func Find(ctx context.Context, arg string) (*Program, error) {
	info, err := os.Stat(arg)
	slash := strings.ContainsRune(arg, filepath.Separator)
	switch {
	case err == nil && info.IsDir() && (slash || arg == "."):
		return findPackage(ctx, arg, ".")
	case err == nil && !info.IsDir() && (slash || filepath.Ext(arg) == ".wasm"):
		return checkFile(ctx, arg, info)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("program %s: %w", arg, command.Cause(err))
	case !slash:
		return findInPath(ctx, arg)
	case strings.HasPrefix(arg, ".") || filepath.IsAbs(arg):
		return nil, fmt.Errorf("program %s: no such file or folder", arg)
	}
	return findPackage(ctx, ".", arg)
}

// findInPath looks up a bare name as a shell does. If there is none in PATH, it accepts a file of that
// name in the current folder, as mpirun does.
func findInPath(ctx context.Context, name string) (*Program, error) {
	if found, err := exec.LookPath(name); err == nil {
		info, err := os.Stat(found)
		if err != nil {
			return nil, fmt.Errorf("program %s: %w", found, command.Cause(err))
		}
		return checkFile(ctx, found, info)
	}
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		return checkFile(ctx, name, info)
	}
	return nil, fmt.Errorf("program %s: not in PATH and not in this folder (write ./%s for the folder of a Go package)", name, name)
}

func checkFile(ctx context.Context, name string, info fs.FileInfo) (*Program, error) {
	if filepath.Ext(name) == ".go" {
		return nil, fmt.Errorf("program %s: name the folder of the Go package instead of a file in it", name)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("program %s: not a regular file", name)
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", name, err)
	}
	p := &Program{Name: filepath.Base(name), file: abs, platform: Local}
	f, start, err := startOf(name)
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", name, err)
	}
	defer f.Close()
	switch {
	case isModule(start):
		p.platform = Wasm
		err = checkModule(ctx, f)
	case filepath.Ext(name) == ".wasm":
		err = errors.New("not a WebAssembly module")
	case info.Mode().Perm()&0o111 == 0:
		err = errors.New("not executable; run chmod +x on the file")
	default:
		if err = checkExecutable(f, start, Local); err == nil {
			err = checkStart(start)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", name, err)
	}
	return p, nil
}

// checkModule returns an error if no peer can run a module.
func checkModule(ctx context.Context, f io.Reader) error {
	module, err := io.ReadAll(f)
	if err != nil {
		return command.Cause(err)
	}
	return launch.CheckModule(ctx, module)
}

// isModule reports whether a file with this beginning is a WebAssembly module of version 1.
func isModule(start []byte) bool { return bytes.Equal(start, []byte("\x00asm\x01\x00\x00\x00")) }

func startOf(name string) (*os.File, []byte, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil, errors.New("not readable, so it cannot be copied to peers")
	}
	if err != nil {
		return nil, nil, command.Cause(err)
	}
	start := make([]byte, 8)
	n, err := f.ReadAt(start, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		f.Close()
		return nil, nil, command.Cause(err)
	}
	return f, start[:n], nil
}

// checkStart checks the first bytes of a file. Only files that the system itself can execute are
// accepted: unlike a shell, a peer does not guess the type of a text file.
func checkStart(start []byte) error {
	if bytes.HasPrefix(start, []byte("#!")) || runtime.GOOS != "linux" || bytes.HasPrefix(start, []byte("\x7fELF")) {
		return nil
	}
	return errors.New("not an executable of this system, a WebAssembly module or a script that begins with a line such as #!/bin/sh")
}

// findPackage checks that pkg, seen from dir, is a Go program.
func findPackage(ctx context.Context, dir, pkg string) (*Program, error) {
	shown := dir
	if pkg != "." {
		shown = pkg
	}
	if _, err := exec.LookPath("go"); err != nil {
		return nil, fmt.Errorf("program %s: a Go package, but there is no go command to build it", shown)
	}
	list := exec.CommandContext(ctx, "go", "list", "-f", "{{.Name}} {{.ImportPath}}", "--", pkg)
	list.Dir = dir
	var out, errs bytes.Buffer
	list.Stdout, list.Stderr = &out, &errs
	if err := list.Run(); err != nil {
		return nil, fmt.Errorf("program %s: not an executable and not a Go package: %s", shown, firstLine(errs.String()))
	}
	kind, importPath, _ := strings.Cut(strings.TrimSpace(out.String()), " ")
	if kind != "main" {
		return nil, fmt.Errorf("program %s: a Go package, but not a program (package %s, want package main)", shown, kind)
	}
	return &Program{Name: path.Base(importPath), dir: dir, pkg: pkg}, nil
}

// Portable reports whether the program can be built for other platforms.
func (p *Program) Portable() bool { return p.pkg != "" }

// Is reports whether the program is a file for the given platform.
func (p *Program) Is(platform submit.Platform) bool { return !p.Portable() && p.platform == platform }

// Build returns the executable for a platform. If it has to be built, it is put into the folder into. The
// error of a failed build contains the compiler's messages, on several lines.
func (p *Program) Build(ctx context.Context, platform submit.Platform, into string) (submit.Executable, error) {
	if !p.Portable() {
		return submit.Executable{Platform: p.platform, Path: p.file}, nil
	}
	target := filepath.Join(into, platform.OS+"-"+platform.Arch, p.Name)
	args := []string{"build", "-o", target}
	if p.TrimPath {
		args = append(args, "-trimpath")
	}
	build := exec.CommandContext(ctx, "go", append(args, "--", p.pkg)...)
	build.Dir = p.dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Arch)
	var errs bytes.Buffer
	build.Stderr = &errs
	if err := build.Run(); err != nil {
		if ctx.Err() != nil {
			return submit.Executable{}, ctx.Err()
		}
		return submit.Executable{}, fmt.Errorf("build %s for %s failed:\n%s", p.Name, platform, strings.TrimSpace(errs.String()))
	}
	return submit.Executable{Platform: platform, Path: target}, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

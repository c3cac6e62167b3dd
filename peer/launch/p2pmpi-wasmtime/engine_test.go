//go:build linux && amd64 && cgo

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/internal/wasm"
)

// engineVariable says which engine the test's own executable is as a runner.
const engineVariable = "TEST_ENGINE"

func TestMain(m *testing.M) {
	var e wasm.Engine = wasmtime{}
	if os.Getenv(engineVariable) == "wazero" {
		e = wasm.Wazero{}
	}
	if status, ours := wasm.Main(e); ours {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// An ended is a runner that has.
type ended struct {
	status         int
	stdout, stderr string
}

// start has a runner with an engine read a file in a folder.
func start(t *testing.T, engine, folder, input string, c wasm.Config, args ...string) ended {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := os.Open(input)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	cmd := exec.CommandContext(t.Context(), self)
	var out, wrong bytes.Buffer
	cmd.Args, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = append([]string{wasm.Name}, c.Arguments(args)...), folder, stdin, &out, &wrong
	cmd.Env = []string{engineVariable + "=" + engine}
	err = cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return ended{cmd.ProcessState.ExitCode(), out.String(), wrong.String()}
}

// compiled returns a file with a module and what an engine has compiled it to.
func compiled(t *testing.T, engine string, module []byte) string {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "module")
	if err := os.WriteFile(path, module, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := start(t, engine, folder, path, wasm.Config{Compile: true}); e.status != 0 {
		t.Fatalf("the compiler has ended with %+v", e)
	}
	s := wasm.NewStore(t.TempDir(), engine)
	if err := s.Add("digest", path, folder); err != nil {
		t.Fatal(err)
	}
	return s.Path("digest")
}

// run runs a module in a folder of its own.
func run(t *testing.T, engine string, module []byte, c wasm.Config, args ...string) ended {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "file"), []byte("contents"), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, engine, folder, compiled(t, engine, module), c, args...)
}

// TestModulesSeeTheSame in this engine and in wazero.
func TestModulesSeeTheSame(t *testing.T) {
	world, err := os.ReadFile(filepath.Join("testdata", "world.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	c := wasm.Config{Created: time.Unix(1e9, 0), Seed: "a seed"}
	here, there := run(t, "wasmtime", world, c, "module", "argument"), run(t, "wazero", world, c, "module", "argument")
	there.stdout = strings.ReplaceAll(there.stdout, engineVariable+"=wazero", engineVariable+"=wasmtime")
	if here != there || here.status != 300&0xff {
		t.Errorf("the module has seen\n%+q\nhere (%d), and\n%+q\nin wazero (%d)", here.stdout, here.status, there.stdout, there.status)
	}
	if !strings.Contains(here.stdout, "argument") || !strings.Contains(here.stdout, "contents") || strings.Contains(here.stdout, "root:") {
		t.Errorf("the module has seen %+q", here.stdout)
	}
	c.Seed = "another"
	if other := run(t, "wasmtime", world, c, "module", "argument"); other.stdout == here.stdout {
		t.Error("random numbers do not follow from the seed")
	}
}

// function returns a module with two pages of memory that begins with a function, in which it has
// one variable, and which returns it: an i32.
func function(code string) []byte {
	body := "\x01\x01\x7f" + code + "\x0b"
	return []byte("\x00asm\x01\x00\x00\x00\x01\x09\x02\x60\x00\x00\x60\x01\x7f\x01\x7f\x03\x03\x02\x00\x01\x05\x03\x01\x00\x02" +
		"\x07\x0a\x01\x06_start\x00\x00\x0a" + counted("\x02"+counted("\x00\x41\xa0\xc2\x1e\x10\x01\x1a\x0b")+counted(body)))
}

func counted(s string) string { return string(rune(len(s))) + s }

// TestWhatNoModuleMay ends it as in wazero, and says why in few words.
func TestWhatNoModuleMay(t *testing.T) {
	for name, tc := range map[string]struct{ code, want string }{
		"unreachable": {"\x00", "unreachable"},
		"stray":       {"\x41\x70\x28\x02\x00", "out of bounds memory access"},
		"no number":   {"\x41\x01\x41\x00\x6d", "integer divide by zero"},
		"no end":      {"\x20\x00\x10\x01", "call stack exhausted"},
		"nothing":     {"\x41\x00", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := run(t, "wasmtime", function(tc.code), wasm.Config{})
			if tc.want == "" && e != (ended{}) {
				t.Errorf("it has ended with %+v", e)
			}
			if tc.want != "" && (e.status != 134 || !strings.Contains(e.stderr, "the module was ended: ") || !strings.Contains(e.stderr, tc.want) || len(e.stderr) > 2*maxReason) {
				t.Errorf("it has ended with status %d and %d bytes: %.1000s", e.status, len(e.stderr), e.stderr)
			}
			if there := run(t, "wazero", function(tc.code), wasm.Config{}); there.status != e.status {
				t.Errorf("in wazero it ends with status %d, here with %d", there.status, e.status)
			}
		})
	}
}

// TestDepth has a function call itself half a million times.
func TestDepth(t *testing.T) {
	deep := function("\x20\x00\x04\x7f\x20\x00\x41\x01\x6b\x10\x01\x05\x41\x00\x0b") // if n then f(n-1) else 0
	if e := run(t, "wasmtime", deep, wasm.Config{}); e != (ended{}) {
		t.Errorf("it has ended with %+v", e)
	}
}

// TestUnknownFunctions cannot be imported.
func TestUnknownFunctions(t *testing.T) {
	module := []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x02\x0b\x01\x03env\x03foo\x00\x00")
	if e := run(t, "wasmtime", module, wasm.Config{}); e.status != 134 || !strings.Contains(e.stderr, "env::foo") {
		t.Errorf("it has ended with %+v", e)
	}
}

// TestOtherCodeIsNotRun has a runner read what the library has not compiled: it compiles the module
// itself.
func TestOtherCodeIsNotRun(t *testing.T) {
	for name, spoil := range map[string]func([]byte) []byte{
		"no code":         func(b []byte) []byte { return make([]byte, len(b)) },
		"another version": func(b []byte) []byte { return bytes.Replace(b, []byte("\x0239"), []byte("\x0238"), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			path := compiled(t, "wasmtime", function("\x41\x00"))
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			cut := bytes.Index(b, []byte("\x7fELF"))
			spoilt := append(bytes.Clone(b[:cut]), spoil(b[cut:])...)
			if bytes.Equal(spoilt, b) {
				t.Fatal("nothing is spoilt")
			}
			if err := os.WriteFile(path, spoilt, 0o600); err != nil {
				t.Fatal(err)
			}
			if e := start(t, "wasmtime", t.TempDir(), path, wasm.Config{}); e != (ended{}) {
				t.Errorf("it has ended with %+v", e)
			}
		})
	}
}

// declared prints what the types in declared.h are.
const declared = `
#define SIZE(t) printf(#t " %zu\n", sizeof(t))
#define AT(t, f) printf(#t "." #f " %zu\n", offsetof(t, f))
int main(void) {
  SIZE(wasm_byte_vec_t), AT(wasm_byte_vec_t, data);
  SIZE(wasm_valtype_vec_t), AT(wasm_valtype_vec_t, data);
  SIZE(wasmtime_func_t), AT(wasmtime_func_t, store_id);
  SIZE(wasmtime_instance_t), AT(wasmtime_instance_t, store_id);
  SIZE(wasmtime_extern_t), AT(wasmtime_extern_t, kind), AT(wasmtime_extern_t, of.func);
  SIZE(wasmtime_val_t), AT(wasmtime_val_t, kind), AT(wasmtime_val_t, of.i32), AT(wasmtime_val_t, of.i64);
  SIZE(wasmtime_val_raw_t), AT(wasmtime_val_raw_t, i32), AT(wasmtime_val_raw_t, i64);
  SIZE(wasmtime_linear_memory_t), AT(wasmtime_linear_memory_t, get_memory), AT(wasmtime_linear_memory_t, grow_memory);
  SIZE(wasmtime_memory_creator_t), AT(wasmtime_memory_creator_t, new_memory);
  SIZE(wasmtime_stack_memory_t), AT(wasmtime_stack_memory_t, get_stack_memory);
  SIZE(wasmtime_stack_creator_t), AT(wasmtime_stack_creator_t, new_stack);
  SIZE(wasmtime_async_continuation_t), AT(wasmtime_async_continuation_t, callback), AT(wasmtime_async_continuation_t, env);
  printf("%d %d %d %d %d\n", WASMTIME_I32, WASMTIME_I64, WASMTIME_EXTERN_FUNC, WASMTIME_OPT_LEVEL_SPEED, WASMTIME_TRAP_CODE_STACK_OVERFLOW);
}
`

// TestDeclarations compares those of declared.h with the library's own: functions by having a
// compiler read both, types by what it makes of each.
func TestDeclarations(t *testing.T) {
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/bytecodealliance/wasmtime-go/v39").Output()
	if err != nil {
		t.Fatal(err)
	}
	library := []string{"-I", filepath.Join(strings.TrimSpace(string(folder)), "build", "include"), "-include", "wasmtime.h"}
	print := func(name string, more ...string) string {
		source, program := filepath.Join(t.TempDir(), name+".c"), filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(source, []byte("#include <stdio.h>\n"+declared), 0o600); err != nil {
			t.Fatal(err)
		}
		args := append(more, "-std=c11", "-include", "./declared.h", "-o", program, source)
		if text, err := exec.CommandContext(t.Context(), "gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		out, err := exec.CommandContext(t.Context(), program).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if ours, theirs := print("ours"), print("theirs", library...); ours != theirs {
		t.Errorf("declared are\n%s\nand the library has\n%s", ours, theirs)
	}
}

//go:build linux && amd64 && cgo

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/module/wasm"
)

// engineVariable is the environment variable that selects the engine of the test's own executable as a
// runner.
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

// An ended is the result of a runner.
type ended struct {
	status         int
	stdout, stderr string
}

// start runs a runner with the given engine in a folder, with input as its standard input.
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

// compiler compiles a module in a folder, and returns the module's path.
func compiler(t *testing.T, engine, folder string, module []byte) (path string, e ended) {
	t.Helper()
	path = filepath.Join(folder, "module")
	if err := os.WriteFile(path, module, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, start(t, engine, folder, path, wasm.Config{Compile: true})
}

// compiled returns the path of a file with a module and its compiled code.
func compiled(t *testing.T, engine string, module []byte) string {
	t.Helper()
	folder := t.TempDir()
	path, e := compiler(t, engine, folder, module)
	if e.status != 0 {
		t.Fatalf("the compiler has ended with %+v", e)
	}
	return kept(t, engine, path, folder)
}

// kept returns the path of a file with a module and the compiled code from a folder.
func kept(t *testing.T, engine, path, folder string) string {
	t.Helper()
	s := wasm.NewStore(t.TempDir(), engine)
	if err := s.Add("digest", path, folder); err != nil {
		t.Fatal(err)
	}
	return s.Path("digest")
}

// run runs a module in a new folder.
func run(t *testing.T, engine string, module []byte, c wasm.Config, args ...string) ended {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "file"), []byte("contents"), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, engine, folder, compiled(t, engine, module), c, args...)
}

// TestEnginesBehaveAlike compares this engine with wazero.
func TestEnginesBehaveAlike(t *testing.T) {
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
		t.Error("the random numbers do not depend on the seed")
	}
}

// function returns a module with two pages of memory. Its _start calls a function with one variable that
// has the given code and returns an i32.
func function(code string) []byte {
	body := "\x01\x01\x7f" + code + "\x0b"
	return []byte("\x00asm\x01\x00\x00\x00\x01\x09\x02\x60\x00\x00\x60\x01\x7f\x01\x7f\x03\x03\x02\x00\x01\x05\x03\x01\x00\x02" +
		"\x07\x0a\x01\x06_start\x00\x00\x0a" + counted("\x02"+counted("\x00\x41\xa0\xc2\x1e\x10\x01\x1a\x0b")+counted(body)))
}

func counted(s string) string { return string(binary.AppendUvarint(nil, uint64(len(s)))) + s }

// TestTraps checks that errors end a module as in wazero, with a short reason.
func TestTraps(t *testing.T) {
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
				t.Errorf("ended with %+v", e)
			}
			if tc.want != "" && (e.status != 134 || !strings.Contains(e.stderr, "the module was ended: ") || !strings.Contains(e.stderr, tc.want) || len(e.stderr) > 2*maxReason) {
				t.Errorf("ended with status %d and %d bytes of output: %.1000s", e.status, len(e.stderr), e.stderr)
			}
			if there := run(t, "wazero", function(tc.code), wasm.Config{}); there.status != e.status {
				t.Errorf("status %d in wazero, %d in wasmtime", there.status, e.status)
			}
		})
	}
}

// TestRecursionDepth makes a function call itself half a million times.
func TestRecursionDepth(t *testing.T) {
	deep := function("\x20\x00\x04\x7f\x20\x00\x41\x01\x6b\x10\x01\x05\x41\x00\x0b") // if n then f(n-1) else 0
	if e := run(t, "wasmtime", deep, wasm.Config{}); e != (ended{}) {
		t.Errorf("ended with %+v", e)
	}
}

// TestEnginesGiveTheSameMemory checks that both engines give a module the same memory for a slot, whatever
// the size of its code. The module takes all memory that it gets, and exits with the number of pages.
func TestEnginesGiveTheSameMemory(t *testing.T) {
	const functions = 5000 // their code has different sizes in both engines
	n := string(binary.AppendUvarint(nil, functions))
	grow := "\x03\x40\x41\x01\x40\x00\x41\x7f\x47\x0d\x00\x0b\x3f\x00\x10\x00" // while grow(1) != -1; proc_exit(size)
	module := []byte("\x00asm\x01\x00\x00\x00" + section(1, "\x02\x60\x00\x00\x60\x01\x7f\x00") +
		section(2, "\x01"+counted("wasi_snapshot_preview1")+counted("proc_exit")+"\x00\x01") +
		section(3, n+strings.Repeat("\x00", functions)) + section(5, "\x01\x00\x01") + section(7, "\x01"+counted("_start")+"\x00\x01") +
		section(10, n+counted("\x00"+grow+"\x0b")+strings.Repeat("\x02\x00\x0b", functions-1)))
	c := wasm.Config{Memory: 128 << 20}
	here, there := run(t, "wasmtime", module, c), run(t, "wazero", module, c)
	if here != there || here.stderr != "" || here.status == 0 {
		t.Errorf("ended with %+v in wasmtime, with %+v in wazero", here, there)
	}
}

// TestUnknownFunctions checks that unknown functions cannot be imported.
func TestUnknownFunctions(t *testing.T) {
	module := []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x02\x0b\x01\x03env\x03foo\x00\x00")
	if e := run(t, "wasmtime", module, wasm.Config{}); e.status != 134 || !strings.Contains(e.stderr, "env::foo") {
		t.Errorf("ended with %+v", e)
	}
}

// TestCompiledCodeMustMatchItsModule combines a module that ends well with the compiled code of one that
// traps. The library runs the code if it has compiled it itself; otherwise it compiles the module.
func TestCompiledCodeMustMatchItsModule(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil  func([]byte) []byte
		status int
	}{
		"its own":         {bytes.Clone, 134},
		"no code":         {func(b []byte) []byte { return make([]byte, len(b)) }, 0},
		"another version": {func(b []byte) []byte { return bytes.Replace(b, []byte("\x0239"), []byte("\x0238"), 1) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path, e := compiler(t, "wasmtime", folder, function("\x00")) // traps
			found, err := filepath.Glob(filepath.Join(folder, ".*", codeFile))
			if e.status != 0 || err != nil || len(found) != 1 {
				t.Fatalf("the compiler has left %q: %+v (%v)", found, e, err)
			}
			code, err := os.ReadFile(found[0])
			if err != nil {
				t.Fatal(err)
			}
			spoilt := tc.spoil(code)
			if tc.status == 0 && bytes.Equal(spoilt, code) {
				t.Fatal("nothing is spoilt")
			}
			if err := errors.Join(os.WriteFile(found[0], spoilt, 0o600), os.WriteFile(path, function("\x41\x00"), 0o600)); err != nil {
				t.Fatal(err)
			}
			if e := start(t, "wasmtime", t.TempDir(), kept(t, "wasmtime", path, folder), wasm.Config{}); e.status != tc.status {
				t.Errorf("ended with %+v, want status %d", e, tc.status)
			}
		})
	}
}

// section returns a section of a module.
func section(id byte, contents string) string { return string(rune(id)) + counted(contents) }

// using returns a module with one page of memory and two function types, which return nothing and two i32.
// Its function has the first type and the given code; further sections precede the code.
func using(code string, further ...string) []byte {
	return []byte("\x00asm\x01\x00\x00\x00" + section(1, "\x02\x60\x00\x00\x60\x00\x02\x7f\x7f") + section(3, "\x01\x00") +
		section(5, "\x01\x00\x01") + strings.Join(further, "") + section(10, "\x01"+counted("\x00"+code+"\x0b")))
}

// TestEnginesAcceptTheSameExtensions checks which extensions of WebAssembly both engines accept, one by one.
func TestEnginesAcceptTheSameExtensions(t *testing.T) {
	const global, export = 6, 7
	for name, tc := range map[string]struct {
		module []byte
		taken  bool
	}{
		"sign extension":          {using("\x41\x00\xc0\x1a"), true},
		"saturating conversions":  {using("\x43\x00\x00\x00\x00\xfc\x00\x1a"), true},
		"bulk memory":             {using("\x41\x00\x41\x00\x41\x00\xfc\x0b\x00"), true},
		"several values":          {using("\x02\x01\x41\x00\x41\x00\x0b\x1a\x1a"), true},
		"references":              {using("\xd0\x70\x1a"), true},
		"vectors":                 {using("\xfd\x0c" + strings.Repeat("\x00", 16) + "\x1a"), true},
		"mutable globals":         {using("", section(global, "\x01\x7f\x01\x41\x00\x0b"), section(export, "\x01\x01g\x03\x00")), true},
		"sums in constants":       {using("", section(global, "\x01\x7f\x00\x41\x01\x41\x01\x6a\x0b")), true},
		"threads: atomic":         {using("\x41\x00\xfe\x10\x02\x00\x1a"), false},
		"threads: shared memory":  {[]byte("\x00asm\x01\x00\x00\x00" + section(5, "\x01\x03\x01\x01")), false},
		"tail calls":              {using("\x12\x00"), false},
		"several memories":        {[]byte("\x00asm\x01\x00\x00\x00" + section(5, "\x02\x00\x01\x00\x01")), false},
		"memory of 64 bits":       {[]byte("\x00asm\x01\x00\x00\x00" + section(5, "\x01\x04\x01")), false},
		"pages of other sizes":    {[]byte("\x00asm\x01\x00\x00\x00" + section(5, "\x01\x08\x01\x00")), false},
		"relaxed vectors":         {using("\xfd\x0c" + strings.Repeat("\x00", 16) + "\xfd\x81\x02\x1a"), false},
		"exceptions":              {using("\x1f\x40\x00\x0b"), false},
		"exceptions: tags":        {[]byte("\x00asm\x01\x00\x00\x00" + section(1, "\x01\x60\x00\x00") + section(13, "\x01\x00\x00")), false},
		"references to functions": {using("\xd0\x00\x1a"), false},
		"garbage collection":      {using("\x41\x00\xfb\x1c\x1a"), false},
		"numbers of 128 bits":     {using("\x42\x00\x42\x00\xfc\x15\x1a\x1a"), false},
		"a component":             {[]byte("\x00asm\x0d\x00\x01\x00"), false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, engine := range []string{"wazero", "wasmtime"} {
				if _, e := compiler(t, engine, t.TempDir(), tc.module); (e.status == 0) != tc.taken {
					t.Errorf("%s: want accepted %v, ended with %+v", engine, tc.taken, e)
				}
			}
		})
	}
}

// library returns information of the go command about the library's module.
func library(t *testing.T, format string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", format, "github.com/bytecodealliance/wasmtime-go/v39").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestNotice checks that the notice matches the library's version and licence.
func TestNotice(t *testing.T) {
	licence, err := os.ReadFile(filepath.Join(library(t, "{{.Dir}}"), "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	if version := strings.TrimPrefix(library(t, "{{.Version}}"), "v"); !strings.Contains(notice, "wasmtime "+version+" ") || !strings.HasSuffix(notice, string(licence)) {
		t.Errorf("the notice is not that of version %s:\n%s", version, notice)
	}
}

// declared is a C program that prints the layout of the types in declared.h.
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

// TestDeclarations compares declared.h with the library's headers. A compiler reads both declarations of
// each function, and prints both layouts of each type.
func TestDeclarations(t *testing.T) {
	library := []string{"-I", filepath.Join(library(t, "{{.Dir}}"), "build", "include"), "-include", "wasmtime.h"}
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

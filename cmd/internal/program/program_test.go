package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// source creates a Go module with a program, a library and a package that does not compile, and makes it
// the current folder.
func source(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{
		"go.mod":         "module example.test/m\n\ngo 1.26\n",
		"prog/main.go":   "package main\n\nfunc main() { println(\"here\") }\n",
		"broken/main.go": "package main\n\nfunc main() { nonsense() }\n",
		"lib/lib.go":     "package lib\n",
		"empty/README":   "",
		"script":         "#!/bin/sh\n",
		"nothing":        "",
		"no-first-line":  "echo here\n",
		"plain.txt":      "",
		"x.wasm":         "\x00asm\x01\x00\x00\x00",
		"y.wasm":         "\x00asm\x0d\x00\x01\x00", // a component
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"script", "nothing", "no-first-line"} {
		if err := os.Chmod(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFind(t *testing.T) {
	source(t)
	tests := map[string]struct{ arg, name, wrong string }{
		"executable":            {arg: "./script", name: "script"},
		"executable, no slash":  {arg: "script", name: "script"},
		"in PATH":               {arg: "sh", name: "sh"},
		"package folder":        {arg: "./prog", name: "prog"},
		"package import path":   {arg: "example.test/m/prog", name: "prog"},
		"library":               {arg: "./lib", wrong: "want package main"},
		"folder without Go":     {arg: "./empty", wrong: "not a Go package"},
		"unknown import path":   {arg: "example.test/m/none", wrong: "not a Go package"},
		"missing":               {arg: "./none", wrong: "no such file"},
		"missing, no slash":     {arg: "surely-no-such-program", wrong: "not in PATH"},
		"folder, no slash":      {arg: "prog", wrong: "./prog for"},
		"Go file":               {arg: "./prog/main.go", wrong: "name the folder"},
		"script without #!":     {arg: "./no-first-line", wrong: "begins with a line such as #!/bin/sh"},
		"empty file":            {arg: "./nothing", wrong: "not an executable"},
		"not executable":        {arg: "./plain.txt", wrong: "not executable"},
		"module":                {arg: "x.wasm", name: "x.wasm"},
		"no module":             {arg: "./y.wasm", wrong: "not a WebAssembly module"},
		"device":                {arg: "/dev/null", wrong: "not a regular file"},
		"option as import path": {arg: "-x/y", wrong: "not a Go package"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := Find(t.Context(), test.arg)
			switch {
			case test.wrong != "":
				if err == nil || !strings.Contains(err.Error(), test.wrong) || !strings.Contains(err.Error(), test.arg) {
					t.Errorf("got %v, want %q and the program's name", err, test.wrong)
				}
			case err != nil || p.Name != test.name:
				t.Errorf("got %+v, %v; want %s", p, err, test.name)
			}
		})
	}
}

func TestBuild(t *testing.T) {
	source(t)
	p, err := Find(t.Context(), "./prog")
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Build(t.Context(), Local, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), e.Path).CombinedOutput(); err != nil || string(out) != "here\n" {
		t.Errorf("got %q, %v from the program", out, err)
	}
	broken, err := Find(t.Context(), "./broken")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := broken.Build(t.Context(), Local, t.TempDir()); err == nil || !strings.Contains(err.Error(), "undefined: nonsense") {
		t.Errorf("got %v, want the compiler's message", err)
	}
}

func TestModuleIsForAllPlatforms(t *testing.T) {
	source(t)
	p, err := Find(t.Context(), "./x.wasm")
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Build(t.Context(), Local, t.TempDir())
	if err != nil || e.Platform != Wasm || p.Portable() {
		t.Errorf("got %+v, %v; want one for %v", e, err, Wasm)
	}
}

func TestFileIsUsedAsIs(t *testing.T) {
	source(t)
	p, err := Find(t.Context(), "./script")
	if err != nil {
		t.Fatal(err)
	}
	want, _ := filepath.Abs("script")
	e, err := p.Build(t.Context(), Local, t.TempDir())
	if err != nil || e != (submit.Executable{Platform: Local, Path: want}) || p.Portable() {
		t.Errorf("got %+v, %v; want %s", e, err, want)
	}
}

package inputs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/filetransfer"
)

// folder creates a folder with the named empty files and returns its path.
func folder(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		name := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestListSkipsBlanksAndComments(t *testing.T) {
	name := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(name, []byte("# corpus\na.txt\n\n  b c.txt \r\n#d\ne"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := List(name)
	if want := []string{"a.txt", "b c.txt", "e"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if _, err := List(name + "x"); err == nil || !strings.Contains(err.Error(), name+"x: no such file") {
		t.Errorf("got %v, want the missing list named", err)
	}
}

func TestSources(t *testing.T) {
	dir := folder(t, "a", "sub/b", "work/c")
	cwd := filepath.Join(dir, "work")
	abs := filepath.Join(dir, "a")
	tests := map[string]struct {
		names []string
		want  []filetransfer.Source
		wrong string // part of the error
	}{
		"relative":    {names: []string{"c"}, want: []filetransfer.Source{{Path: "c", From: filepath.Join(cwd, "c")}}},
		"unclean":     {names: []string{"./x/../c"}, want: []filetransfer.Source{{Path: "c", From: filepath.Join(cwd, "c")}}},
		"absolute":    {names: []string{abs}, want: []filetransfer.Source{{Path: abs[1:], From: abs}}},
		"named twice": {names: []string{"c", "./c"}, want: []filetransfer.Source{{Path: "c", From: filepath.Join(cwd, "c")}}},
		"T3 outside":  {names: []string{"../a"}, wrong: "outside the current folder"},
		"missing":     {names: []string{"nope"}, wrong: "input file nope: no such file"},
		"a folder":    {names: []string{"/"}, wrong: "outside"},
		"folder":      {names: []string{"../work"}, wrong: "outside the current folder"},
		"device":      {names: []string{"/dev/null"}, wrong: "not a regular file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, err := Resolve(cwd, test.names)
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("got %v, want %q", err, test.wrong)
				}
				return
			}
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got %v, %v; want %v", got, err, test.want)
			}
		})
	}
}

func TestTwoFilesForOnePathAreRefused(t *testing.T) {
	dir := folder(t)
	inside := filepath.Join(dir, dir, "a") // staged under the absolute path of the other file
	outside := filepath.Join(dir, "a")
	for _, f := range []string{inside, outside} {
		if err := os.MkdirAll(filepath.Dir(f), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := Resolve(dir, []string{outside, outside[1:]})
	if err == nil || !strings.Contains(err.Error(), "both be staged") {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestManyMissingFilesAreCounted(t *testing.T) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprint("missing", i))
	}
	_, _, err := Resolve(t.TempDir(), names)
	if err == nil || strings.Count(err.Error(), "\n") != maxReported || !strings.Contains(err.Error(), "staged: 95") {
		t.Errorf("got %v, want %d files and a count", err, maxReported)
	}
}

package docs

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSleepsHaveReasons requires a comment at each time.Sleep of a test, on its line or the line above. Tests
// wait for a condition; a sleep is the time under test or the interval between polls. Files that import
// internal/virtualtime or testing/synctest need no comments, since their sleeps take virtual time.
func TestSleepsHaveReasons(t *testing.T) {
	sleeps := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool {
			return i.Path.Value == `"testing/synctest"` || i.Path.Value == `"github.com/p2pmpi/p2pmpi/internal/virtualtime"`
		}) {
			return nil
		}
		explained := make(map[int]bool) // lines on which a comment ends
		for _, c := range f.Comments {
			explained[files.Position(c.End()).Line] = true
		}
		for _, at := range sleepsIn(f) {
			sleeps++
			if p := files.Position(at); !explained[p.Line] && !explained[p.Line-1] {
				t.Errorf("%s: wait for a condition, or give the reason of the sleep in a comment", p)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if sleeps == 0 {
		t.Error("no time.Sleep was found: the test looks in the wrong place")
	}
}

// TestVirtualTimeHasOneProcessor requires tests to use internal/virtualtime, since the race detector crashes in a
// bubble with several processors.
func TestVirtualTimeHasOneProcessor(t *testing.T) {
	uses := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "sleep_test.go" {
			return err
		}
		source, err := os.ReadFile(path)
		if bytes.Contains(source, []byte("synctest.Test(")) {
			t.Errorf("%s: call virtualtime.Test instead of synctest.Test", path)
		}
		uses += bytes.Count(source, []byte("virtualtime.Test("))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if uses == 0 {
		t.Error("no call of virtualtime.Test was found: the test looks in the wrong place")
	}
}

// sleepsIn returns the positions of the calls of time.Sleep.
func sleepsIn(f *ast.File) (at []token.Pos) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
				if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "time" {
					at = append(at, call.Pos())
				}
			}
		}
		return true
	})
	return at
}

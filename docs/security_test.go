package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)(?:/([^`]+))?`")

// TestAttacksHaveTheirTests checks that the tests and subtests that security.md names exist, and that each row
// about an attack names a test.
func TestAttacksHaveTheirTests(t *testing.T) {
	text, err := os.ReadFile("security.md")
	if err != nil {
		t.Fatal(err)
	}
	named := testName.FindAllStringSubmatch(string(text), -1)
	if len(named) < 30 {
		t.Errorf("security.md names %d tests", len(named))
	}
	tests := allTests(t)
	for _, name := range named {
		words, ok := tests[name[1]]
		if !ok {
			t.Errorf("there is no %s", name[1])
		} else if name[2] != "" && !words[name[2]] {
			t.Errorf("where %s is, no test is called %q", name[1], name[2])
		}
	}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, " | "); len(cells) == 3 && strings.HasPrefix(line, "| ") &&
			strings.Contains(line, "Test") && !testName.MatchString(cells[2]) {
			t.Errorf("no test in %s", line)
		}
	}
}

// allTests returns the module's tests and fuzz targets by name, each with all strings in its file, which include
// the names of its subtests.
func allTests(t *testing.T) map[string]map[string]bool {
	t.Helper()
	tests := make(map[string]map[string]bool)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		words := quotedIn(f)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				tests[fn.Name.Name] = words
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

// quotedIn returns the strings in a file.
func quotedIn(f *ast.File) map[string]bool {
	words := make(map[string]bool)
	ast.Inspect(f, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if text, err := strconv.Unquote(l.Value); err == nil {
				words[text] = true
			}
		}
		return true
	})
	return words
}

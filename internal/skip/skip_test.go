package skip

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// permitted maps the messages of skips that are not due to a missing resource to the reason why each is harmless.
var permitted = map[string]string{
	"the race detector needs more memory than is granted": "CI also runs it without the race detector",
	"version 2 tells by itself":                           "there is nothing to find out",
	"this is not version 1":                               "a machine has one version",
	"the system does not use control groups version 2":    "CI runs it in an emulated machine (.ci/version2)",
	"root may enter every home: run it as another user":   "CI runs README's test command as another user, too (.ci/short)",
	"with -mutants": "only changes to the protocol's rules need it",
}

// TestOnlyListedTestsAreSkipped checks that all tests but those in permitted report a missing resource with Lacks,
// and so fail in CI.
func TestOnlyListedTestsAreSkipped(t *testing.T) {
	found := make(map[string]bool)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			for _, call := range skipsIn(d) {
				if words := permittedBy(call); words != "" {
					found[words] = true
				} else {
					t.Errorf("%s: report the missing resource with skip.Lacks", files.Position(call.Pos()))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for words, why := range permitted {
		if !found[words] {
			t.Errorf("no test is skipped because %q (%s)", words, why)
		}
	}
}

// skipsIn returns the calls by which tests in a declaration skip themselves.
func skipsIn(d ast.Decl) (calls []*ast.CallExpr) {
	tests := make(map[string]bool) // names of parameters of type *testing.T and the like
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if isTest(n.Type) {
				for _, name := range n.Names {
					tests[name.Name] = true
				}
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(f.Sel.Name, "Skip") {
				if of, ok := f.X.(*ast.Ident); ok && tests[of.Name] {
					calls = append(calls, n)
				}
			}
		}
		return true
	})
	return calls
}

// isTest reports whether a type is *testing.T or another of that package.
func isTest(of ast.Expr) bool {
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	s, ok := of.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, ok := s.X.(*ast.Ident)
	return ok && from.Name == "testing"
}

// permittedBy returns the message of permitted that a call contains, or "".
func permittedBy(call *ast.CallExpr) string {
	for _, a := range call.Args {
		if said, ok := a.(*ast.BasicLit); ok {
			for words := range permitted {
				if strings.Contains(said.Value, words) {
					return words
				}
			}
		}
	}
	return ""
}

package mpj

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// faces lists the files whose calls package core carries out.
var faces = []string{
	"attribute.go", "buffer.go", "cancel.go", "group.go", "matched.go", "persistent.go", "pointtopoint.go", "request.go", "typed.go",
}

// mostStatements bounds the statements of a function in these files: checks of a datatype, a call of package core, and
// the conversion of its results.
const mostStatements = 5

// TestFacesAreThin checks that functions of these files only convert arguments and results, so that an interface in C
// finds everything else in package core.
func TestFacesAreThin(t *testing.T) {
	for _, name := range faces {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && len(fn.Body.List) > mostStatements {
				t.Errorf("%s: %s has %d statements, want %d at most", name, fn.Name.Name, len(fn.Body.List), mostStatements)
			}
		}
	}
}

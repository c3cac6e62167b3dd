package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// directFiles are the files of the direct transport.
const directFiles = " counting.go credit.go direct.go directtransport.go fetch.go reading.go refuse.go rendezvous.go toself.go unneeded.go "

// TestEngineDoesNotKnowItsTransport checks that the files of the engine name neither the direct
// transport, except to make it the default, nor its types, and that no file imports the other
// transport or a protocol.
func TestEngineDoesNotKnowItsTransport(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("found files %v, %v", files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			if p := strings.Trim(i.Path.Value, `"`); strings.HasSuffix(p, "/engine/protected") || strings.HasSuffix(p, "/replication") {
				t.Errorf("%s imports %s", name, p)
			}
		}
		if strings.Contains(directFiles, " "+name+" ") {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			switch id.Name {
			case "direct", "inflow", "fetch", "protected", "protocol", "Protocol":
				t.Errorf("%s names %s", name, id.Name)
			case "newDirect":
				if name != "engine.go" {
					t.Errorf("%s names %s", name, id.Name)
				}
			}
			return true
		})
	}
}

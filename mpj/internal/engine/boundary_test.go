package engine

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestEngineDoesNotKnowItsTransport checks that the engine imports neither a transport nor a protocol,
// and that no file but sums.go, which passes on the type of a result, names the protection.
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
			if p := strings.Trim(i.Path.Value, `"`); strings.Contains(p, "/engine/") || strings.HasSuffix(p, "/replication") ||
				strings.HasSuffix(p, "/internal/protection") && name != "sums.go" {
				t.Errorf("%s imports %s", name, p)
			}
		}
	}
}

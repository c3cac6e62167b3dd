package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// decoding lists the calls that decode bytes of a stream or message. Calls of package encoding/binary that read
// numbers also count: see readsNumber.
var decoding = map[string]bool{
	"SetStreamHandler": true, "ReadMsg": true, "ReadFull": true, "Unmarshal": true, "ConsumeTypedEnvelope": true,
}

// undecoded lists packages that make such calls, but decode no input from other peers.
var undecoded = map[string]string{
	"cmd/internal/program":           "the submitter's files",
	"e2e/bench/finding/sim":          "names that it made itself",
	"mpj/internal/guest":             "answers of the engine that it runs in",
	"internal/loopback":              "passes streams on",
	"peer/launch/process/supervisor": "the output of its children",
	"peer/control":                   "messages of the owner's commands and peer",
	"peer/net/node":                  "the file with its ports",
	"peer/owner/machine":             "the file with its speed",
	"peer/owner/uptime":              "the file with its running time",
	"peer/net/relay":                 "resets its streams, and passes those of the library on",
}

// TestEveryDecoderIsFuzzed checks that each package that decodes input from other peers has a fuzz target.
func TestEveryDecoderIsFuzzed(t *testing.T) {
	decodes, fuzzed := make(map[string]bool), make(map[string]bool)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".pb.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), ".."+string(filepath.Separator)))
		switch {
		case strings.HasSuffix(path, "_test.go"):
			fuzzed[name] = fuzzed[name] || len(fuzzTargets(f)) > 0
		default:
			decodes[name] = decodes[name] || calls(f, decoding)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range undecoded {
		if !decodes[name] || fuzzed[name] {
			t.Errorf("package %s needs no exception", name)
		}
	}
	found := 0
	for _, name := range slices.Sorted(maps.Keys(decodes)) {
		top, _, _ := strings.Cut(name, "/")
		switch {
		case !decodes[name]:
		case undecoded[name] != "" || top == "e2e" || top == "examples":
		case !fuzzed[name]:
			t.Errorf("package %s decodes what other peers send, and has no fuzz target", name)
		default:
			found++
		}
	}
	if found < 10 {
		t.Errorf("only %d packages that decode messages were found", found)
	}
}

// fuzzTargets returns the names of the fuzz targets of a file.
func fuzzTargets(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Fuzz") {
			names = append(names, fn.Name.Name)
		}
	}
	return names
}

// calls reports whether a file calls a function or method with one of these names, or reads numbers.
func calls(f *ast.File, names map[string]bool) (any bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			s, ok := call.Fun.(*ast.SelectorExpr)
			any = any || ok && (names[s.Sel.Name] || readsNumber(s))
		}
		return !any
	})
	return any
}

// readsNumber reports whether a call of package encoding/binary reads a number, such as binary.Uvarint or
// binary.LittleEndian.Uint32.
func readsNumber(call *ast.SelectorExpr) bool {
	of := call.X
	if order, ok := of.(*ast.SelectorExpr); ok {
		of = order.X
	}
	reads := slices.ContainsFunc([]string{"Uint", "Uvarint", "Varint", "Read"}, func(begin string) bool {
		return strings.HasPrefix(call.Sel.Name, begin)
	})
	pkg, ok := of.(*ast.Ident)
	return reads && ok && pkg.Name == "binary"
}

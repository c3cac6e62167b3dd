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

// decoding are the calls by which bytes become something: of a stream, of a message, of what a
// message holds. Numbers that package encoding/binary reads are more.
var decoding = map[string]bool{
	"SetStreamHandler": true, "ReadMsg": true, "ReadFull": true, "Unmarshal": true, "ConsumeTypedEnvelope": true,
}

// undecoded are the packages that call them, and decode nothing that comes from another peer.
var undecoded = map[string]string{
	"cmd/internal/localnet":          "what its own children print",
	"cmd/internal/program":           "files of the submitter's own",
	"e2e/bench/finding/sim":          "names that it has made itself",
	"mpj/internal/guest":             "what the engine answers that it runs in",
	"internal/loopback":              "hands streams on",
	"peer/launch/process/supervisor": "what its own children print",
	"peer/control":                   "what the owner's own commands and peer send",
	"peer/net/node":                  "the file of its own ports",
	"peer/owner/machine":             "the file of its own speed",
	"peer/owner/uptime":              "the file of its own running time",
	"peer/net/relay":                 "resets every stream, and hands those of the library on",
}

// TestEveryDecoderIsFuzzed compares the packages that decode what comes from other peers with those
// that have fuzz targets.
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
		t.Errorf("found %d packages that decode", found)
	}
}

// fuzzTargets are the names of a file's.
func fuzzTargets(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Fuzz") {
			names = append(names, fn.Name.Name)
		}
	}
	return names
}

// calls reports whether a file calls one of these, of whatever they are, or has numbers read.
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

// readsNumber reports whether a call is binary.Uvarint, binary.LittleEndian.Uint32 or another of that package by which
// bytes become numbers.
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

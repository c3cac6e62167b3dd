package wasm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/p2pmpi/p2pmpi/mpj/hostcall"
)

// maxChecked bounds the size, in bytes, of the modules that are checked. A check takes memory of about 25
// times the module's size, and more for a module of one long function.
const maxChecked = 12 << 20

// Check reports why no peer can run a module: the module is damaged, or it imports a function or memory that
// a Host does not offer. A module larger than maxChecked passes, and the peer that compiles it detects the
// fault.
func Check(ctx context.Context, binary []byte) error {
	if len(binary) > maxChecked {
		return nil
	}
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features))
	defer r.Close(ctx)
	compiled, err := r.CompileModule(ctx, binary)
	if err != nil {
		return fmt.Errorf("a WebAssembly module that is damaged, or of a later version than 2.0: %s", printable(err.Error()))
	}
	has, err := offered(ctx, r)
	if err != nil {
		return err
	}
	for _, f := range compiled.ImportedFunctions() {
		module, name, _ := f.Import()
		if module == "gojs" || module == "go" {
			return errors.New("a WebAssembly module for JavaScript (GOOS=js): peers run WASI programs, so build it with GOOS=wasip1")
		}
		if s, ok := has[module][name]; !ok || !s.of(f) {
			return foreign("function", module, name)
		}
	}
	for _, m := range compiled.ImportedMemories() {
		module, name, _ := m.Import()
		return foreign("memory", module, name)
	}
	return nil
}

func foreign(kind, module, name string) error {
	return fmt.Errorf("a WebAssembly module that imports the %s %.80q of %.80q, which peers do not have: build it for WASI (wasip1)", kind, name, module)
}

// printable turns an engine's error, which may quote the module, into one line.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, " "))
	return strings.Join(strings.Fields(text[:min(len(text), 300)]), " ")
}

// A signature holds the types of a function's parameters and results.
type signature struct{ params, results []api.ValueType }

func (s signature) of(f api.FunctionDefinition) bool {
	return slices.Equal(s.params, f.ParamTypes()) && slices.Equal(s.results, f.ResultTypes())
}

// offered returns the functions that a Host offers, by module and name.
func offered(ctx context.Context, r wazero.Runtime) (map[string]map[string]signature, error) {
	wasi, err := wasi_snapshot_preview1.NewBuilder(r).Compile(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]signature{wasi_snapshot_preview1.ModuleName: {}, hostcall.Name: {}}
	for name, f := range wasi.ExportedFunctions() {
		out[wasi_snapshot_preview1.ModuleName][name] = signature{f.ParamTypes(), f.ResultTypes()}
	}
	for i := range hostcall.Functions {
		f := &hostcall.Functions[i]
		out[hostcall.Name][f.Name] = signature{types(f.Params), results(f)}
	}
	return out, nil
}

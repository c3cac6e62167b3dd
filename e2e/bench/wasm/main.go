// The program runs a WASI module by wasmtime, to compare with the engine that peers have. It
// is a Go module of its own, since wasmtime needs cgo. measure.sh uses it.
package main

import (
	"fmt"
	"os"

	"github.com/bytecodealliance/wasmtime-go/v39"
)

func main() {
	c := wasmtime.NewConfig()
	c.SetCraneliftOptLevel(wasmtime.OptLevelSpeed)
	e := wasmtime.NewEngineWithConfig(c)
	b, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	m, err := wasmtime.NewModule(e, b)
	if err != nil {
		panic(err)
	}
	l := wasmtime.NewLinker(e)
	l.DefineWasi()
	s := wasmtime.NewStore(e)
	w := wasmtime.NewWasiConfig()
	w.SetArgv(os.Args[1:])
	w.InheritStdout()
	w.InheritStderr()
	s.SetWasi(w)
	i, err := l.Instantiate(s, m)
	if err != nil {
		panic(err)
	}
	if _, err := i.GetFunc(s, "_start").Call(s); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

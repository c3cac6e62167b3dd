//go:build linux && amd64 && cgo

package main

import (
	_ "embed"
	"fmt"
	"os"

	"github.com/p2pmpi/p2pmpi/peer/launch/module/wasm"
)

// notice lists the third-party software in the executable, and its licences.
//
//go:embed NOTICE
var notice string

func main() {
	status, ok := wasm.Main(wasmtime{})
	switch {
	case ok:
	case len(os.Args) == 2 && os.Args[1] == "--notice":
		fmt.Print(notice)
	default:
		fmt.Fprintln(os.Stderr, "p2pmpi-wasmtime must be started by a peer: name it with --wasm-engine. With --notice it prints the licences of the software that it contains")
		status = 64
	}
	os.Exit(status)
}

//go:build linux && amd64 && cgo

package main

import (
	"fmt"
	"os"

	"github.com/p2pmpi/p2pmpi/peer/launch/internal/wasm"
)

func main() {
	status, ok := wasm.Main(wasmtime{})
	if !ok {
		fmt.Fprintln(os.Stderr, "p2pmpi-wasmtime is for a peer to start: name it with --wasm-engine")
		status = 64
	}
	os.Exit(status)
}

//go:build !(linux && amd64 && cgo)

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "p2pmpi-wasmtime is for Linux on amd64, built with cgo; wazero, which every peer has, is for all others")
	os.Exit(64)
}

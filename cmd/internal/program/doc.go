// Package program turns the PROGRAM of p2prun's command line into executables:
// a file is taken as it is, a Go package is built for every platform asked for.
//
//	./prog, prog in PATH       -> file, for this machine's platform
//	./examples/ep, import path -> go list -> go build, once for each platform
//	x.wasm                     -> file, for all platforms
package program

// Package program converts the PROGRAM argument of p2prun to executables. A file is used unchanged. A Go package
// is built for every requested platform.
//
//	./prog, prog in PATH       -> file, for this machine's platform
//	./examples/ep, import path -> go list -> go build, once for each platform
//	x.wasm                     -> file, for all platforms
package program

// The command p2pmpi-wasmtime runs the WebAssembly modules of jobs by wasmtime, which compiles
// them to better code than wazero, the engine that every peer has.
//
//	cd peer/launch/p2pmpi-wasmtime && go build -o ../../../bin/
//
// A peer looks for it beside p2pboot, or where --wasm-engine says, and tries it within its walls
// when it starts: what works is used, and the peer's log says which engine that is. It is a
// Go module and an executable of its own, since it needs cgo and a library of 50 MB, for Linux
// on amd64 and arm64. p2pboot has neither, whichever engine it finds.
//
//	peer -- supervisor -- stage (confine) -- execve --> runner: p2pmpi-wasmtime
//	                                                      module (wasmtime)
//	                                                        | resume
//	                                                      package wasm: system, hostcall -> engine, line
//
// All but the engine is that of package wasm: what a module sees, its part in the job, the
// store of compiled modules. So replicas in different engines do the same, but for the bits of
// numbers that are none (NaN), in which processors differ too.
//
// # Calls
//
// A module runs on a stack of its own (wasmtime's asynchronous calls). When it calls a function of
// its host, the library stops it there and returns, and Go makes the call as any other, on a
// goroutine that no thread is bound to; then it has the module go on. No C function calls Go: such a
// callback costs several times as much, and whoever waits in one changes threads.
//
// # The library
//
// The library is that of the Go module of wasmtime, whose own functions are not used: they
// know no asynchronous calls. Its headers cannot be named from here, so module.c has the declarations
// that it needs in declared.h, and TestDeclarations has a C compiler compare both.
package main

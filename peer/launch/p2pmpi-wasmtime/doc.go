// The command p2pmpi-wasmtime runs the WebAssembly modules of jobs by wasmtime, which compiles
// them to better code than wazero, the engine that every peer has.
//
//	cd peer/launch/p2pmpi-wasmtime && go build -o ../../../bin/
//
// A peer whose owner names it by --wasm-engine tries it within its walls when it starts: if it works
// it is used, and the peer's log says which engine that is. Nobody has it unasked: this version of
// wasmtime gets no more fixes (docs/security.md). It is a Go module and an executable of its own, since
// it needs cgo and a library, which make 30 MB of it; p2pboot has neither. It is for Linux on amd64,
// where it is tested; built for others it only says so.
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
// its host, that stack is left as it is, and module_resume returns; Go makes the call as any other,
// and has the module go on. No C function calls Go: such a callback costs several times as much, and
// what ends the module in one has to find its way through the library.
//
// There are two ways to leave the stack. The library's own, which takes half a microsecond, is for
// the calls that wait, since the module may go on on another thread then. All other calls take half of that:
// the library does not know that the stack was left (module.c).
//
// # The library
//
// The library is that of the Go module of wasmtime, whose own functions are not used: they
// know no asynchronous calls. Its headers cannot be named from here, so module.c has the declarations
// that it needs in declared.h, and TestDeclarations has a C compiler compare both.
package main

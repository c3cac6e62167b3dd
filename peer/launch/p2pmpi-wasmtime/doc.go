// The command p2pmpi-wasmtime runs the WebAssembly modules of jobs with wasmtime. It compiles them to
// faster code than wazero, the engine that every peer has.
//
//	cd peer/launch/p2pmpi-wasmtime && go build -o ../../../bin/
//
// A peer whose owner selects it by --wasm-engine examines it in its sandbox at startup. If it works, the
// peer uses it, and logs the name of the engine. It is never used without that option: this version of
// wasmtime gets no more fixes (docs/security.md). It is a separate Go module and executable, since it needs
// cgo and a library, which add 30 MB; p2pboot needs neither. It supports Linux on amd64, where it is
// tested. Builds for other systems only print a message to that effect.
//
//	peer -- supervisor -- stage (confine) -- execve --> runner: p2pmpi-wasmtime
//	                                                      module (wasmtime)
//	                                                        | resume
//	                                                      package wasm: system, hostcall -> engine, control socket
//
// Everything except the engine comes from package wasm: the system that a module sees, its role in the job,
// and the store of compiled modules. Replicas in different engines therefore behave alike. The exception is
// the bits of NaN values, in which processors differ too.
//
// # Calls
//
// A module runs on its own stack (wasmtime's asynchronous calls). When it calls a host function,
// module_resume returns and that stack stays as it is. Go handles the call like any other, and resumes the
// module. No C function calls Go: such callbacks cost several times as much, and an error that ends the
// module in one would have to unwind through the library.
//
// There are two ways to leave the stack. The library's own takes half a microsecond. It is used for calls
// that wait, since the module may then continue on another thread. All other calls take half of that, in a
// way of which the library is unaware (module.c).
//
// # The library
//
// The library is the one in wasmtime's Go module. That module's own functions are not used, since they do
// not support asynchronous calls. Its headers cannot be included from here, so declared.h contains the
// declarations that module.c needs. TestDeclarations compares both with a C compiler.
package main

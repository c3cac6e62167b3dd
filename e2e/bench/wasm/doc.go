// The command wasm measures the cost of running a program as a WebAssembly module. The programs are
// the kernels EP, IS and CG and a stencil, in C and in Go. They run as native programs and as
// modules in two engines, wazero (pure Go, used by the peers) and wasmtime (cgo). The command also
// measures the time to compile and start modules, and the cost of a message between modules.
//
//	cd e2e/bench/wasm && go run . -rounds 5 -out ../../../docs
//
//	C    gcc -O3, clang --target=wasm32-wasi     engine <- this program
//	Go   go build, GOOS=wasip1 go build          engine <- this program <- p2prun --local 1
//
// The kernels are those of e2e/bench/c and of examples. Each verifies its result, and measures its
// own time after its setup. A kernel in Go is one rank of a job. This program is then the job's
// native program, and joins the job for the module through package hostcall, as the peers' runner
// does. In each round every contender runs once, in random order. Ratios compare with the native
// program in the same round.
//
// It is a separate module, so that users of the project do not need cgo. It needs clang, wasm-ld
// and wasi-libc (apt-get install clang lld wasi-libc libclang-rt-14-dev-wasm32).
package main

// The command wasm measures what a program costs as a WebAssembly module: the kernels EP,
// IS and CG and a stencil, in C and in Go, as native programs and as modules in two
// engines, wazero (pure Go, that of the peers) and wasmtime (cgo); how long modules take
// to be compiled and started; and what a message between modules costs.
//
//	cd e2e/bench/wasm && go run . -rounds 5 -out ../../../docs
//
//	C    gcc -O3, clang --target=wasm32-wasi     engine <- this program
//	Go   go build, GOOS=wasip1 go build          engine <- this program <- p2prun --local 1
//
// The kernels are those of e2e/bench/c and of examples; each verifies its result, and has
// its own clock, which starts when it is set up. A kernel in Go is one rank of a job: this program
// is then the job's native program, and joins it for the module, by package hostcall as
// the peers' runner does. In each round every contender runs once, in random order, and
// ratios are those to the native program in the same round.
//
// It is a module of its own, so that nobody who uses the project needs cgo. It needs
// clang, wasm-ld and wasi-libc (apt-get install clang lld wasi-libc libclang-rt-14-dev-wasm32).
package main

module github.com/p2pmpi/p2pmpi/e2e/bench/wasm

go 1.26

require github.com/bytecodealliance/wasmtime-go/v39 v39.0.1 // indirect

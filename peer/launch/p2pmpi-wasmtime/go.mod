module github.com/p2pmpi/p2pmpi/peer/launch/p2pmpi-wasmtime

go 1.26.0

require (
	github.com/bytecodealliance/wasmtime-go/v39 v39.0.1
	github.com/p2pmpi/p2pmpi v0.0.0
)

require (
	github.com/gofrs/flock v0.13.1 // indirect
	github.com/tetratelabs/wazero v1.12.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/p2pmpi/p2pmpi => ../../..

// Package pb is what viewgroup adds to the wire format of Raft.
package pb

//go:generate protoc --go_out=. --go_opt=paths=source_relative viewgroup.proto

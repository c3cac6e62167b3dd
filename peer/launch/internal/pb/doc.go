// Package pb holds the messages that open a channel stream between two peers,
// generated from channel.proto.
package pb

//go:generate protoc --go_out=. --go_opt=paths=source_relative channel.proto

// Package pb contains the messages that open a channel stream between two peers. It is generated from
// channel.proto.
package pb

//go:generate protoc --go_out=. --go_opt=paths=source_relative channel.proto

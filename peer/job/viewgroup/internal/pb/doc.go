// Package pb contains the messages that viewgroup sends in addition to those of Raft.
package pb

//go:generate protoc --go_out=. --go_opt=paths=source_relative viewgroup.proto

// Package pb holds the messages of the filetransfer protocol and the encoding of a manifest, generated
// from transfer.proto.
package pb

//go:generate protoc --go_out=. --go_opt=paths=source_relative transfer.proto

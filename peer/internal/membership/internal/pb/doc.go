// Package pb holds the wire format of tokens and of their exchange.
package pb

//go:generate protoc --go_out=. --go_opt=paths=source_relative membership.proto

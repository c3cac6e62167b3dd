// Package pb contains the messages for tokens and their exchange.
package pb

//go:generate protoc --go_out=. --go_opt=paths=source_relative membership.proto

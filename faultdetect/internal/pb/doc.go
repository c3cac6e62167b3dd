// Package pb holds the wire format of faultdetect.
package pb

//go:generate protoc --go_out=. --go_opt=paths=source_relative faultdetect.proto

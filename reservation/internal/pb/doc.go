// Package pb holds the wire format of the reservation protocol.
package pb

//go:generate protoc --go_out=. --go_opt=paths=source_relative reservation.proto

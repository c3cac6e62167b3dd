// Package messagelog keeps the message log of a process with replicas: the input of its rank. A replica that joins the
// rank later replays the log, so that its program catches up.
//
//	engine                          Log                            new replica
//	  |-- Keep(messages, outcomes) -->|  tail -> file                   |
//	  |-- Piece(process, position) -->|-------- bytes from position --->|
//	  |-- BeginCheckpoint ----------->|  Draft <- state of the program  |
//	  |-- Commit(draft, records) ---->|  replaces the middle part       |
//
// A Log never waits for the disk in Keep or Commit: they return a function that writes, which the caller runs in another
// goroutine. The package knows the encoding of records (package protection) and no channels. It does not promise that a
// process has a log: a log is dropped if it would become too long, or if the disk is full or too slow.
package messagelog

// Package protection is the seam between the matching engine and whatever
// keeps a job right when processes fail.
//
//	program -> mpj -> engine -- Send, Decide --> Protocol --> channels
//	                    ^                           |  ^
//	                    +---- Deliver, Decided -----+  +-- Receive, View, Tick
//
// The engine matches messages with receives and knows nothing of replicas. A
// Protocol sees every send, arrival, decision and failure, and answers with
// what to put on which channel and what to hand to the engine. Protocols are
// pure: no goroutine, no clock, no I/O. A job without replicas has none, and the
// engine then moves messages directly; package replication is the protocol of
// r > 1; rollback and message logging would stand beside it.
package protection

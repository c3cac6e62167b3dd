// Package protection is the interface between the matching engine and the protocols that keep a job
// correct when processes fail.
//
//	program -> mpj -> engine -- Send, Decide --> Protocol --> channels
//	                    ^                           |  ^
//	                    +---- Deliver, Decided -----+  +-- Receive, View, Tick
//
// The engine matches messages with receives and does not depend on replicas. It passes every send, arrival,
// decision and failure to a Protocol, which returns the frames to send on each channel and the messages for the
// engine. Protocols are pure: no goroutine, no clock, no I/O. A job without replicas has no Protocol, and the
// engine then moves messages directly. Package replication is the protocol for r > 1. Protocols of rollback
// recovery can implement the same interface.
package protection

// Package job makes the decisions about a running job: which changes of its view to request, when its
// processes may leave mpj.Init, which output the user gets, and the result. The package is a pure core:
// no goroutine, clock or I/O. Package submit, the submitter's side of a job, passes it one event at a
// time and carries out the effects.
//
//	Event: a report of a peer, a verdict of the fault detector, a change of the view that was agreed on
//	    |
//	    v  Apply
//	State --> Effects: requested changes, view, notes to the user, result
//	  processes: the view and the reports about each process; disputes: contradicting reports (V4)
//	Emission: each record of output once, whichever replica it comes from (R6)
//	Entry:    processes that never call mpj.Init (V4)
//	Accounts: compares the messages and output of finished replicas (V4)
//	Healing:  which rank that lacks a replica is served next
//
// A report about a process takes effect only through a new view, and views are numbered (V1). State requests the
// changes of the view; Committed is the event that one has been agreed on.
//
// # When replicas diverge
//
// A process reports when a receiver has received a different message from the one that the process has produced
// (package replication). State decides the dispute by the number of replicas that have produced each version
// (dispute.go). The peer of a replica that has ended reports an Account of everything that the replica sent and
// printed; Accounts compares them with each other and with the output that the user has received (account.go).
// Replicas of which only some call mpj.Init are compared as well (init.go).
package job

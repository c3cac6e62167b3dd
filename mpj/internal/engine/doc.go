// Package engine is the matching engine of one process. It matches messages with receives, keeps
// communication contexts apart, and moves frames between the channels and a Transport.
//
//	 program's goroutines                                  other processes
//	Send, Recv, Wait, Test ...   +-> outlet -> Sender ====> 1.0
//	          |                  +-> outlet -> Sender ====> 1.1
//	+---------v------------------+----+
//	| engine  match.Box per context   |  one mutex
//	|         open points             |
//	|         Transport               |
//	+---------^-----------------------+
//	          +--- inlet <- Receiver <===================== 1.0
//
// # Two transports
//
// With replicas, the transport hands every message to the protection protocol, together with a copy
// of its payload for the backup table. The message goes to each live replica of its destination: see
// package protected. Without replicas (r = 1) the transport sends from the program's buffer and receives
// into the program's buffer where possible: see package direct. Package match matches messages and
// receives for both. The engine does not know which transport it has: each step that differs is a
// method of Transport or Handler (transport.go). A transport may use of the engine what Loop offers.
//
// # Goroutines
//
// Progress does not depend on the program making calls. A channel with a descriptor has one
// goroutine that reads it. A second goroutine writes the frames that the program's own goroutine has
// not written already. A ring in shared memory has no goroutine of its own. A goroutine that waits
// in a call polls the ring; when no goroutine waits, the pump polls it (poll.go). Readers never
// write to a channel that may block; they put their answers into an outlet. Every process therefore
// always accepts arriving frames, and two processes that send to each other cannot block each other.
//
// # Parts
//
// The engine's mutex guards all parts. The comment of each type states what the type hides and what
// it needs from the engine:
//
//	connections  queues of frames, channels and the goroutines that read and write them
//	poller       progress on rings, and the program's sleeping goroutines
//	finalized, spares, payloadPool, ticker
//
// # Nondeterminism
//
// With a named source, matching is a function of the program and of each rank's sequence of
// messages. All replicas make the same matches without communication. A receive or probe from
// AnySource, Iprobe, the Test family, Waitany, Waitsome and Wtime also depend on timing. Each such
// call takes a point: the next index of its context, in program order, the same at all replicas. The
// decider (the rank's master) chooses an outcome and passes it to the protocol. The outcome takes
// effect at every replica, the decider included, when the protocol returns it as decided. A process
// without replicas chooses on its own. AnySource uses the context of its communicator. Decisions
// about requests and the clock may span communicators; they use DecisionContext, in which no message
// is ever sent.
//
// Until an AnySource receive is decided, receives that are posted later and name a source cannot
// take a message that the AnySource receive may get: see package match.
package engine

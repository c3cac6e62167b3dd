// Package engine is the matching engine of one process: it brings messages and
// receives together, keeps the contexts apart, and moves frames between the
// channels and the protection protocol, if there is one.
//
//	 program's goroutines                                  other processes
//	Send, Recv, Wait, Test ...   +-> outlet -> Sender ====> 1.0
//	          |                  +-> outlet -> Sender ====> 1.1
//	+---------v------------------+----+
//	| engine  mailbox per context     |  one mutex
//	|         open points             |
//	|         protection.Protocol     |
//	+---------^-----------------------+
//	          +--- inlet <- Receiver <===================== 1.0
//
// # Two ways for a message
//
// With replicas every message is given to the protocol, with a copy of its
// payload for the backup table, and goes to each live replica of its
// destination: protected.go. Without (r = 1) the engine moves it directly, from
// the program's buffer if it can and to the program's buffer if it knows it:
// direct.go, rendezvous.go and credit.go say how. Matching is the same: mailbox.go.
//
// # Who works
//
// Nothing waits for the program. A channel with a descriptor has a goroutine
// that reads it, and one that writes what the program's own goroutine has not
// written already. A ring in shared memory has none: whoever waits in a call
// polls it, and when nobody waits, the pump does: poll.go. Readers never write to
// a channel that may block: what they cause to be sent they put into an outlet.
// So every process always takes what arrives, and two that send to each other
// never wait for each other.
//
// # Nondeterminism
//
// With a named source, matching is a function of the program and the sequence
// of messages of each rank, so all replicas do the same without talking. A
// receive or probe from AnySource, Iprobe, the Test family, Waitany, Waitsome
// and Wtime also depend on timing. Each such call takes a point: the next
// index of its context, in program order, the same at all replicas. The
// decider (the rank's master) chooses an outcome and gives it to the protocol; it
// takes effect, there as everywhere, when the protocol returns it as decided. A
// process without replicas just chooses. AnySource uses the context of its communicator;
// decisions about requests and the clock, which may span communicators, use
// decisionContext, in which no message is ever sent.
//
// Until an AnySource receive is decided, a message that it may get is kept
// from the named receives that were posted after it: see mailbox.
//
// # New replicas
//
// A view may have more replicas than the one before. Their channels are taken as soon
// as the view has them: join.go. What reaches a process from outside is kept in
// a log (past.go), out of which the protocol gives a replica that joins the rank later
// all that its program needs to come as far as the others. A checkpoint of the program
// takes the place of the middle of the log (checkpoint.go, draft.go).
package engine

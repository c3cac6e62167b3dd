// Package engine is the matching engine of one process: it brings messages and
// receives together, keeps the contexts apart, and moves frames between the
// channels and the protection protocol.
//
//	 program's goroutines            one writer each       other processes
//	Send, Recv, Wait, Test ...   +-> outlet -> Sender ====> 1.0
//	          |                  +-> outlet -> Sender ====> 1.1
//	+---------v------------------+----+
//	| engine  mailbox per context     |  one mutex
//	|         open points             |
//	|         protection.Protocol     |
//	+---------^-----------------------+
//	          +--- inlet <- Receiver <===================== 1.0
//	                 one reader each
//
// Readers never write to a channel: what they cause to be sent they put into
// an outlet. So every process always takes what arrives, and two that send to
// each other never wait for each other. Messages are sent eagerly and copied
// once on either side; a send waits only while more than flowLimit bytes are
// on their way or kept by the protocol, and what ends that wait (writers and
// acknowledgements) never depends on the program of the other side.
//
// # Nondeterminism
//
// With a named source, matching is a function of the program and the sequence
// of messages of each rank, so all replicas do the same without talking. A
// receive or probe from AnySource, Iprobe, the Test family, Waitany, Waitsome
// and Wtime also depend on timing. Each such call takes a point: the next
// index of its context, in program order, the same at all replicas. The
// decider (the rank's master, or any process without replicas) chooses an outcome and gives it to
// the protocol; it takes effect, there as everywhere, when the protocol
// returns it as decided. AnySource uses the context of its communicator;
// decisions about requests and the clock, which may span communicators, use
// decisionContext, in which no message is ever sent.
//
// Until an AnySource receive is decided, a message that it may get is kept
// from the named receives that were posted after it: see mailbox.
package engine

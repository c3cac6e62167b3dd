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
// # What bounds memory with replicas
//
// A receiver takes and acknowledges whatever arrives, and the protocol's backup table
// at the sender keeps what has not arrived everywhere: a send waits while more than flowLimit
// is on its way. That wait always ends: a live process reads, and one that is stopped for
// good is failed by its peer. What has arrived and is not received waits at the receiver, and flow.go
// bounds that: a send is done when its destination's replicas have received enough of what came before,
// or its message. So of each sender a replica keeps, apart from messages of sends that are not done:
//
//	the quickest of its rank   near: 4 MiB of short messages, 16 MiB of long ones, and one message
//	a slower one               far: 32 MiB of each, 256 MiB in small jobs
//
// and an eighth of near more, which is received and not told of. A sender keeps what its replicas
// lack and have not acknowledged, which is no more than that. What a program has under way itself,
// by Isend, it has chosen to; the copies of it, here and there, are as large as its own buffers.
//
// A slow replica is neither failed nor dropped for that: whoever sends to it waits once it is far
// behind, and from then on the job has its pace. Until then the quickest set the pace, so that one that
// is to become master (pace.go) comes to be ahead.
//
// No program hangs that would not without replicas. A message is on its way before its send waits, so what
// waits never keeps from anybody what it needs: the matching of that very message ends the wait as well,
// and for that everybody has what he needs to come as far as the program without replicas and with
// synchronous sends. Say nothing happens any more, and look at the replica of each rank that is least far. It
// waits for a message, and then it is one that the same replica of the source has not sent, for
// what any replica as far as that one has sent the master has, and it arrives; or for an outcome, and then the
// master, which is no less far, is there and has none to choose; or for its send to be done, and
// then the least far of the destination has not matched the message, since if that has, all have. So they wait
// for each other as the ranks of a program without replicas would whose sends beyond
// the credit are synchronous, and such a one is wrong (eagerCredit is less than near, and like it counts short messages only).
//
// Faults change nothing in that. All replicas of the source count, and are told, alike, so one that becomes
// master waits or goes on as the old one would have. Counts are totals, and are told again when a channel has
// broken or a process is new; that a message has been matched is asked again, as it is when the
// view changes. Whoever has failed does not count. A new replica relives its rank's past, of which it takes
// as much as its program receives (join.go); it counts from when it is whole. One that ends receives
// nothing more, and says so by having received everything.
//
// # New replicas
//
// A view may have more replicas than the one before. Their channels are taken as soon
// as the view has them: join.go. What reaches a process from outside is kept in
// a log (past.go), out of which the protocol gives a replica that joins the rank later
// all that its program needs to come as far as the others. A checkpoint of the program
// takes the place of the middle of the log (checkpoint.go, draft.go).
package engine

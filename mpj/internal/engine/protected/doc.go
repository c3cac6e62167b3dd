// Package protected is the transport of a process with replicas. It passes every send, arrival, outcome
// and view to the protection protocol, and carries out what the protocol returns.
//
//	program's calls                       frames of other processes
//	calls.go                              channels.go
//	     |                                     |
//	     +----> protection.Protocol <----------+
//	                  | Output
//	             apply.go: frames to send, messages, outcomes
//
// # Parts
//
// The comment of each type states what the type hides and what it needs from the engine:
//
//	decisions      outcomes of nondeterministic calls
//	windows        ends of sends; window.go describes the receive windows
//	notices        match notices
//	retained       payloads in use
//	finish         Finalize
//	rejoin         replay of the message log
//	checkpointing  checkpoints of the program
//	leading        lead over the master
//	stall          waiting time of outcomes
//	reports        callbacks
//
// # Memory bounds with replicas
//
// A receiver accepts and acknowledges every message that arrives. The protocol's backup table at the
// sender keeps the messages that a replica still lacks. A send waits while more than flowLimit bytes
// are queued or kept. That wait always ends: a live process reads, and the peer of a permanently
// stopped process fails it. Messages that have arrived and that no receive has matched stay in the
// receiver's memory; windows bound them (window.go). A send ends when the replicas of its destination have
// received enough of the earlier messages, or have matched the message of the send. So per sender,
// and apart from messages of sends that are not done, a replica keeps at most:
//
//	the fastest of its rank    near: 4 MiB of short messages, 16 MiB of long ones, and one message
//	a slower one               far: 32 MiB of each class, up to 256 MiB in small jobs
//
// Of these bytes, as the sender counts them, up to one eighth of near for short messages has already
// been received and is not yet reported. A sender keeps the messages that the replicas of their
// destination have not acknowledged, within the same bounds. The program chooses the amount of data
// that it keeps pending with Isend. The copies of those messages, at sender and receiver, are as
// large as the buffers of the program.
//
// A replica does not fail because it is slow. Senders to it wait once it is far behind, and from
// then on the job runs at its pace. Until then the job runs at the pace of the fastest replica, so a
// replica that should become master can get ahead (package lead).
//
// Replication adds no deadlock. A send transmits its message before it waits, so a waiting send
// withholds nothing that another process needs. Matching that message also ends the wait. All
// processes therefore advance as far as in a program without replicas whose sends beyond the credit
// are synchronous. Suppose that all progress has stopped, and consider the least advanced replica of
// each rank. It waits for one of three things:
//
//   - A message. The least advanced replica of the source has not sent the message. If it had, the
//     source's master, which is no less advanced, would also have sent the message, and it would arrive.
//   - An outcome. The master, which is no less advanced, has reached the same call and has no
//     outcome to choose.
//   - The end of a send. The least advanced replica of the destination has not matched the
//     message; if it had, all replicas of the destination would have.
//
// So these replicas wait for each other like the ranks of a program without replicas whose sends
// beyond the credit are synchronous. Such a program is erroneous. The bound direct.EagerCredit is less
// than near and, like near, counts only short messages.
//
// Faults do not change this. All replicas of the source count messages and receive reports alike, so
// a new master waits or continues as the old one would have. Counts are totals, and a process sends
// them again when a channel has broken or a process is new. Queries for matches are repeated in
// these cases and when the view changes. Failed processes do not count. A new replica replays its
// rank's message log as fast as its program receives (rejoin.go), and counts once the replay is
// complete. A process whose program has ended receives no further messages, and reports that it has
// received everything.
//
// # New replicas
//
// A view may have more replicas than the previous view. The engine accepts their channels as soon as
// the view contains them. A message log (package messagelog) keeps all input of a process:
// the messages of other ranks, and outcomes. From this log, the protocol replays them to a replica
// that joins the rank later, whose program thereby catches up. A checkpoint of the program replaces
// the middle part of the log (checkpoint.go).
package protected

// Package replication keeps a job correct while processes fail. Every rank runs on r replicas, which all
// compute. One of them, the master, sends the rank's messages. The package implements protection.Protocol
// for r > 1. It is pure: it has no goroutine, clock or I/O.
//
//	     rank 0                               rank 1
//	0.0 master  --- Data ------------------> 1.0
//	  |   ^  \----- Data ------------------> 1.1
//	  |   |                                   |
//	  |   +-------- Ack ---------------------+|   (1.0 as well as 1.1,
//	  |   +-------- Ack ----------------------+    each to 0.0 and 0.1)
//	  |   |
//	  | Determinant, Stable
//	  v   | DeterminantAck
//	0.1 replica: the same sends, kept in the backup table and not sent
//
// # Messages
//
// All replicas of a rank make the same sends, so (context, source, dest, seq) identifies a message at every
// process. Every replica, including the master, keeps a message in its backup table until every live replica of
// the destination has acknowledged it (R3). Acknowledgements are cumulative and slightly delayed, and go to all
// live replicas of the source. If a replica receives an acknowledgement before it has produced the message, it
// records the acknowledgement, and the message never enters the table. A replica that becomes master sends the
// contents of its table; receivers drop the duplicates (R2). A message from a rank to itself stays in the process.
//
// A table is emptied by the receiver's acknowledgement, and not by the master's statement that it has
// sent the message. The original P2P-MPI did the latter, and lost a message if the path and then the
// master failed.
//
// # Divergence
//
// Replicas that behave differently are detected by the messages that they send. An acknowledgement carries a
// digest of each message that it newly acknowledges. Every replica of the source compares the digests with the
// messages that it has produced, or will produce. The comparison covers the tag, number, length and payload of
// each message, per context and destination. The first acknowledgement of a message reveals whether the message
// differs between a replica and its master, at most 32 messages, 256 KiB or a Tick later. The comparison uses the
// data that arrived, so it detects changes by the program, memory, the channel or a lying peer.
//
//	0.0 master  --- Data -------> 1.0   the digest under a key that only 1.0 knows
//	0.0 = <---- Ack, key, digest -- |
//	0.1 ≠ <---- Ack, key, digest ---+
//	 |  Diverged: the digests at 0.1 and at 1.0
//	 +- Dispute --> 0.0, 0.2        which report their own digests (r >= 3)
//
// The digest is a universal hash (digest.go), not a cryptographic hash. Without special instructions a processor
// computes SHA-256 at 0.35 GB/s, a fifth of the throughput of a channel. Each message is hashed by its receiver,
// and by each of its source's replicas for each receiver. The universal hash reaches 37 GB/s on a recent server
// processor, and 7 GB/s without its vector instructions. A universal hash is secure only while its key is secret.
// Here only the receiver knows the key until it has received the messages, and the acknowledgement that reveals the
// key is the last use of the key. A lying peer would have to change a message so that the digest stays the same under
// a key that is drawn later. The probability is 2^-49 for 1 MiB. Even 64 bits of SHA-256 without a key would not be
// much better.
//
// A replica that is asked about a dispute waits for the receiver's own acknowledgement, because the disputing
// replica may lie. If all receivers have acknowledged the message and it was dropped, the replica can only state
// that the message matched the receiver's digest. So a receiver that lies late, to one replica alone, may cause
// that replica to be voted out. A process cannot decide which side is at fault. It reports its own version
// (Output.Diverged), and the component that makes the views decides: peer/job. A replica does not report what it
// cannot know. It cannot know about messages that were acknowledged on a channel that broke twice, about messages
// that were dropped after their receiver had left, and, if it is behind by some millions of messages, about these.
//
// Other differences in behaviour appear in later messages. A replica that calls Recv where its master calls Send
// lacks a message, so its next message to the same destination in the same context has the wrong number. If there
// is no such message, or the replica sends an additional message, which its master does not send and no receiver
// acknowledges, its Sums differ. The Sums contain the number of messages in each stream, with a digest of their
// tags and lengths, and of the payloads of messages to the rank itself. The component that makes the views
// compares the Sums when processes have finished. A process that resumed from a checkpoint has no Sums. An outcome
// that a master has forged (Wtime, Rand) is the same at all replicas and therefore not a divergence.
//
// # Determinants
//
// The master decides each nondeterministic call and proposes the outcome to the live replicas of its rank. When
// all counting replicas have it, the determinant is stable. The master then shows it to its program and tells the
// replicas, which show it to theirs. A replica that becomes master first asks the others for the outcomes that
// they hold (Sync). Each of them answers once its own view also names that replica as master, and from then on
// refuses the old master. The new master proposes these outcomes again, and makes its own decisions only after the
// last answer.
//
// The view may name another master while the old one is live: the replica that is ahead, so that a slow machine
// does not slow its rank. The new master also asks the old one, which answers when its own view names the new
// master. From then on the old master neither decides nor transmits. It may become master again later. Each period
// as master is a separate term, numbered by the epoch in which it began (View.Since). Questions and answers
// contain the term, and an answer of an earlier term is ignored.
//
// # A replica that does not answer
//
// A silent replica would delay its rank until it has failed. So the view may set the replica aside: outcomes then
// become stable without it, at the replicas that count. The replica stays live and gets every outcome, only later.
// It cannot be master, because it may lack outcomes that the others have seen. The view contains the epoch in
// which it was set aside (View.Aside), and only another view lets it count again:
//
//	0.0 master                      0.1, aside since epoch 7
//	 | ... stable without 0.1, held here and at 0.2 ...
//	 | <-- Ready 7 -------------------|   has the view in which it is aside
//	 |--- Determinant, ... ---------->|   outcomes wait for it from now on
//	 | <-- DeterminantAck, ... -------|
//	 |--- UpToDate 7, term 1 -------->|   lacks no held outcome
//	view 9: 0.1 counts <--------------|   requests this with the statement
//
// Outcomes that are stable without 0.1 stay held, at the master and at each replica that has them, until 0.1 also
// has them or has failed. So a process with such outcomes does not finish. If these outcomes exceed maxExempt,
// outcomes wait for 0.1 again.
//
// UpToDate stays true: since Ready no outcome has become stable without 0.1, and none will unless 0.1 is set aside
// again, in a later epoch. The view accepts the statement only in the term of the master that made it.
//
// If the master fails while 0.1 is set aside, another counting replica becomes master, and asks all replicas
// including 0.1. If no counting replica is left, 0.1 also fails and the rank is lost (R7), unless a replica has
// finished, because a replica finishes only when 0.1 lacks nothing.
//
// # Why no effect leaves before its determinant is everywhere (R4)
//
// No program, of a master or of a replica, sees an outcome before it is stable. So every effect of a process (a
// message, a line of output, a file) depends only on outcomes that each counting replica of its rank has. This
// holds whichever replica becomes master next, and however many replicas fail. A replica could see an outcome on
// arrival instead, one message earlier. But with r >= 3 it could then become master, print, and fail before a
// third replica has the outcome; the third replica could then decide differently. A replica is not on the critical
// path, so it waits.
//
// No two masters give different outcomes of one point to live replicas. The second master waits for the answer, in
// its own term, of every process that is live in its view. Each of these processes, including replicas that are
// set aside, has refused the first master since before its answer, and has reported all outcomes that it held. So
// either a process held the first master's outcome and the second master adopts it, or no live process has the
// outcome or ever will. If the first master is live, it has also answered. It holds the outcomes that it has
// proposed but not made stable. The outcomes that it has made stable are at every counting replica, and it holds
// them for the others. After its answer it decides nothing until it is master in a later term, for which the
// second master must answer in turn. A process may get the view of that term without the views in between. It has
// then answered none of the masters in between, so these have not decided anything.
//
// Frames that an old master has sent in its term may arrive at any later time. Messages are numbered, and the new
// master sends all that are not acknowledged; duplicates are dropped. Determinants from a replica that is not
// master are ignored, and are not a protocol violation: the sender holds them and has reported them. An old
// master's Stable frame is also ignored: the new master may have proposed the outcome again and rely on the
// replica holding it. An acknowledgement that a replica has an outcome stays true in every term.
//
// # A new replica
//
// A view may contain a process that is new in a running rank. Its program starts from the beginning, and
// the protocol replays to it everything that has reached the rank so far, as fast as it can process it.
// The source is the message log of the rank, which its master keeps (frames of kind MessageLog carry it).
//
//	0.2 new      0.1 master     1.0, 1.1
//	 | <-- Greet ----|              |   each has 0.2 in its view from now on
//	 | <-- Ack, Greet --------------|   and acknowledges messages of rank 0
//	 |- LogRequest ->|              |   when all have greeted
//	 | <- MessageLog-|              |   piece by piece, until the end
//	 |--- Ack, Greet -------------->|   acknowledges; requests the rest
//	 | <-- Data --------------------|
//
// There is no gap in the messages. From its greeting on, a process keeps the messages that the new replica lacks.
// The master had already acknowledged the messages that the process dropped before, and keeps them in its log, so
// they are in the log that is requested afterwards. A process that failed before its greeting may have dropped
// more, but the replicas of its rank have not. All messages of a process that has finished had been acknowledged
// before. No message is delivered twice, because messages are numbered. The receivers have already acknowledged
// the messages that the new replica sends during the replay, so it neither keeps nor transmits them.
//
// There is no gap in the outcomes either. After its greeting, an old master makes no outcome stable without the
// new replica. For an earlier outcome there are two cases. If the master that is asked for the log has shown the
// outcome, the log contains it. Otherwise that master held the outcome and has proposed it to the new replica. The
// master answers only once it decides, which is after it has proposed all outcomes that it holds, and once the new
// replica has them. So a replica whose log is complete has every outcome that any program of its rank has seen. It
// may become master, however far its own program is. A replica whose log is incomplete never becomes master. If no
// replica is left to send the log, the new replica gives up. If the master changes, the next master sends the log
// from the start, and the new replica drops the part that it already has.
//
// # A checkpoint
//
// A program can save its state at a point at which none of its operations is in progress. The log then
// contains that state and a Snapshot (checkpoint.go) in place of everything between the program's first
// checkpoint and the last one. A new replica replays the log up to the first checkpoint, which its program
// then reaches. There it takes over the state of the process that made the last checkpoint, and replays
// the rest of the log.
//
//	prologue | state, snapshot | rest of the log
//	   |              |               +--> replayed
//	   |              +--> Resume, when the program is at its first checkpoint
//	   +--> replayed
//
// The new replica is then in the state that it would have reached by replaying everything:
//
//   - Sent messages. Every replica of the destination has acknowledged the messages that the master has
//     dropped, or gets them from its own rank's log, as above. The snapshot contains the others, and the
//     new replica keeps them as the master does, even if receivers have already acknowledged them.
//   - Received messages. The snapshot has their numbers, and the messages that the program had not
//     received yet. So there is no gap and no duplicate.
//   - Outcomes. All points up to the last one that the program had reached are stable and seen. The new
//     replica never shows the outcomes of these points that it holds. All other outcomes are in the rest of
//     the log, or are proposed to the new replica.
//
// So R1 to R4 hold as for a replica that has replayed everything.
//
// The master makes the snapshot in one step, when the state has been saved, and the log continues after it. No
// process drops a log that a new replica is reading. If the master changes meanwhile, and one of the two logs has
// a checkpoint, the new replica gives up, because the two logs do not fit together. It does not count yet, and
// another new replica takes its place.
//
// # What is not promised
//
// The package does not detect failures and does not make views; it trusts the authority that numbers the views.
// The state per context (next numbers, ranges of decided points) is small but is kept until the process ends.
package replication

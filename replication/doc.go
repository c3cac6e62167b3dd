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
// All replicas of a rank make the same sends, so (context, source, dest, seq) identifies a message at
// every process. Every replica, including the master, keeps a message in its backup table until every
// live replica of the destination has acknowledged it (R3). Acknowledgements are cumulative and slightly
// delayed, and go to all live replicas of the source. If an acknowledgement arrives before its message
// has been produced, it is remembered, and the message never enters the table. A replica that becomes
// master sends the contents of its table; receivers drop the duplicates (R2). A message from a rank to
// itself stays in the process.
//
// A table is emptied by the receiver's acknowledgement, and not by the master's statement that it has
// sent the message. The original P2P-MPI did the latter, and lost a message if the path and then the
// master failed.
//
// # Divergence
//
// Replicas that behave differently are detected by the messages that they send. An acknowledgement
// carries a digest of each message that it newly acknowledges. Every replica of the source compares the
// digests with the messages that it has produced, or will produce. The comparison covers a message's tag,
// number, length and payload, in its context and to its destination. So the first message in which a
// replica differs from its master is detected by its first acknowledgement, at most 32 messages, 256 KiB
// or a Tick later. The comparison uses the data that really arrived, so it detects changes by program,
// memory, channel or a lying peer.
//
//	0.0 master  --- Data -------> 1.0   the digest under a key that only 1.0 knows
//	0.0 = <---- Ack, key, digest -- |
//	0.1 ≠ <---- Ack, key, digest ---+
//	 |  Diverged: the digests at 0.1 and at 1.0
//	 +- Dispute --> 0.0, 0.2        which report their own digests (r >= 3)
//
// The digest is a universal hash (digest.go), not a cryptographic one. Without special instructions a
// processor computes SHA-256 at 0.35 GB/s, a fifth of the throughput of a channel. Each message is hashed
// by its receiver, and by each of its source's replicas for each receiver. The universal hash reaches 7
// GB/s in plain Go. Such a hash is as strong as its key is secret. Here only the receiver knows the key
// until it has received the messages, and the acknowledgement that reveals the key is its last use. A
// liar would have to change a message so that its digest stays the same under a key that is drawn later.
// The probability is 2^-47 for 1 MiB. Even 64 bits of SHA-256 without a key would not be much better.
//
// A replica that is asked about a dispute waits until the receiver has told it directly what it received,
// since the disputing replica may lie. If all have acknowledged the message and it is dropped, the
// replica can only state that the message matched the receiver's digest. So a receiver that lies late, to
// one replica alone, may cause that replica to be voted out. A process cannot decide which side is at
// fault. It reports what it has produced (Output.Diverged), and the component that makes the views
// decides: peer/job. A replica reports nothing that it cannot know. This concerns messages acknowledged
// on a channel that broke twice, messages dropped after their receiver had left, and those of a replica
// that is behind by some millions.
//
// Other differences in behaviour show up in later messages. A replica that calls Recv where its master
// calls Send lacks a message, so its next message to the same destination in the same context has the
// wrong number. If there is no such message, or the replica sends an additional one, which its master
// does not send and no receiver acknowledges, its Sums differ. They contain the number of messages in
// each stream, with a digest of their tags and lengths, and of the payloads of messages to itself. The
// component that makes the views compares them when processes have finished. A process that resumed from
// a checkpoint has no Sums. An outcome that a master has invented (Wtime, Rand) is the same at all
// replicas and no divergence.
//
// # Determinants
//
// The master decides each nondeterministic call and proposes the outcome to the live replicas of its
// rank. When all counting replicas have it, the determinant is stable. The master then shows it to its
// program and tells the replicas, which show it to theirs. A replica that becomes master first asks the
// others for the outcomes that they hold (Sync). They answer once their own view names it master too, and
// from then on refuse the old one. The new master proposes these outcomes again, and makes decisions of its
// own only after the last answer.
//
// The view may name another master although the old one lives: the replica that is ahead, so that a slow
// machine does not slow its rank. The old master is asked like the others, and answers when its own view
// names the new one. From then on it neither decides nor transmits. It may become master again later.
// Each such time is a separate term, numbered by the epoch in which it began (View.Since). Questions and
// answers carry the term, and an answer of an earlier term is ignored.
//
// # A replica that does not answer
//
// A silent replica would delay its rank until it has failed. So the view may set it aside: outcomes then
// become stable without it, at the replicas that count. It stays live and gets every outcome, only later.
// It cannot be master, since it may lack outcomes that the others have seen. A view records the epoch in
// which it was set aside (View.Aside), and only another view lets it count again:
//
//	0.0 master                      0.1, aside since epoch 7
//	 | ... stable without 0.1, held here and at 0.2 ...
//	 | <-- Ready 7 -------------------|   it has seen the view in which it is aside
//	 |--- Determinant, ... ---------->|   outcomes wait for it from now on
//	 | <-- DeterminantAck, ... -------|
//	 |--- UpToDate 7, term 1 -------->|   nothing is held that it lacks
//	view 9: 0.1 counts <--------------|   it requests that with the statement
//
// Outcomes that are stable without 0.1 stay held, at the master and at each replica that has them, until
// 0.1 has them too or has failed. So a process with such outcomes does not finish. If they exceed
// maxExempt, outcomes wait for 0.1 again.
//
// UpToDate stays true: since Ready no outcome has become stable without 0.1, and none does unless 0.1 is
// set aside again, in another epoch. The view accepts the statement only in the term of the master that
// made it.
//
// If the master fails while 0.1 is set aside, another counting replica becomes master, and asks 0.1 as it
// asks all. If none is left, 0.1 fails too and the rank is lost (R7), unless a replica has finished: that
// one waited until 0.1 lacked nothing.
//
// # Why no effect leaves before its determinant is everywhere (R4)
//
// No program, of a master or of a replica, sees an outcome before it is stable. So every effect of a
// process, be it a message, a line of output or a file, depends only on outcomes that each counting
// replica of its rank has. This holds whichever of them becomes master next, and however many fail. A
// replica could see an outcome on arrival instead, one message earlier. But with r >= 3 it could then
// become master, print, and fail before a third replica has the outcome; that one would decide
// differently. A replica is not on the critical path, so it waits.
//
// No two masters give different outcomes of one point to live replicas. The second master waits for the
// answer, in its own term, of every process that is live in its view. Each of those refuses the first
// master since before it answered, and has reported all outcomes that it held; so have replicas that are
// set aside. So either a process held the first master's outcome and the second adopts it, or no live
// process has it or ever will. If the first master is live, it has answered as well. It holds the
// outcomes that it has proposed and not made stable. Those that it has made stable are at every counting
// replica, and it holds them for the others. After its answer it decides nothing before it is master in a
// later term, for which the second master has to answer in turn. A process that gets the view of that
// term without those in between has answered no master in between, so none of them has decided anything.
//
// Frames that an old master has sent in its term may arrive at any later time. Messages are numbered, and
// the new master sends all that are not acknowledged; duplicates are dropped. Determinants from a replica
// that is not master are ignored, and are no protocol violation: the sender holds them and has reported
// them. An old master's Stable frame is ignored as well: the new master may have proposed the outcome
// again and rely on it being held. An acknowledgement that a replica has an outcome stays true in every
// term.
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
// There is no gap in the messages. From its greeting on, a process keeps the messages that the new
// replica lacks. The messages that it dropped before, the master had acknowledged before and keeps in its
// log, so they are in the log that is requested afterwards. A process that failed without having greeted
// drops more, but the replicas of its rank do not. For a process that has finished, all its messages had
// been acknowledged before. No message is delivered twice, since messages are numbered. What the new
// replica sends meanwhile, the receivers have already acknowledged, so it neither keeps nor sends it.
//
// There is no gap in the outcomes either. After its greeting, an old master makes none stable without the
// new replica. For an earlier outcome there are two cases. The master that is asked for the log may have
// shown it, so that it is in the log. Otherwise it held the outcome and has proposed it to the new
// replica. It answers only once it decides, which is after it has proposed all that it holds, and once
// the new replica has that. So a replica whose log is complete knows every outcome that any program of its
// rank has seen. It may become master, however far its own program is. A replica whose log is incomplete
// never does. If no replica is left to send it the log, it gives up. If the master changes, the next one
// sends the log again from the start, and the new replica drops the part that it has already.
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
//   - Sent messages. Every replica of the destination has acknowledged the messages that the master had
//     dropped, or gets them from its own rank's log, as above. The snapshot contains the others, and the
//     new replica keeps them like the master, whatever receivers have told it of them.
//   - Received messages. The snapshot has their numbers, and the messages that the program had not
//     received yet. So there is no gap and no duplicate.
//   - Outcomes. All points up to the last one that the program had reached are stable and seen. The new
//     replica never shows the outcomes of these points that it holds. All other outcomes are in the rest of
//     the log, or are proposed to the new replica.
//
// So R1 to R4 hold as for a replica that has replayed everything.
//
// The snapshot is made when the state has been saved, in one step, and the log continues after it. No
// process drops a log that a new replica is reading. If the master changes meanwhile, and one of the two
// logs has a checkpoint, the new replica gives up, because the two logs do not fit together. It does not
// count yet, and another one replaces it.
//
// # What is not promised
//
// The package does not detect failures and does not make views; it trusts the one authority that numbers
// them. The state per context (next numbers, ranges of decided points) is small but is kept as long as
// the process runs.
package replication

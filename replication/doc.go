// Package replication keeps a job right while processes fail: every rank runs
// on r replicas, all of which compute, and one of which, the master, speaks.
// It is the protection.Protocol of r > 1: pure, with no goroutine, clock or
// I/O.
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
// All replicas of a rank make the same sends, so (context, source, dest, seq)
// names a message everywhere. Every replica, the master too, keeps a message in
// its backup table until every live replica of the destination has
// acknowledged it (R3). Acknowledgements are cumulative, a little late, and go
// to all live replicas of the source; one that arrives before its message has
// been produced is remembered, and the message then never enters the table. A
// replica that becomes master sends what its table holds; receivers drop the
// duplicates (R2). A message that a rank sends to itself stays in the process.
//
// The receiver's acknowledgement, not the master's word that it has sent, is
// what empties a table. The original P2P-MPI did the latter, and lost a message
// whenever the path and then the master failed.
//
// # Divergence
//
// Replicas that do not do the same are found by what they send. An acknowledgement
// carries a digest of each message that it is the first to acknowledge, and every
// replica of the source compares them with what it has produced itself, or will
// have: a message's tag, number, length and payload, in its context and to its
// destination. So the first message in which a replica differs from its master is
// found by the first acknowledgement of it, 32 messages, 256 KiB or a Tick later at
// most, and what is compared is what has really arrived, whoever has changed it:
// program, memory, channel or a peer that lies.
//
//	0.0 master  --- Data -------> 1.0   the digest under a key that 1.0 keeps to itself
//	0.0 = <---- Ack, key, digest -- |
//	0.1 ≠ <---- Ack, key, digest ---+
//	 |  Diverged: what 0.1 has produced, what 1.0 has got
//	 +- Dispute --> 0.0, 0.2        which say what they have produced (r >= 3)
//
// The digest is a universal hash (digest.go) and not a cryptographic one: with
// SHA-256 a processor without instructions for it hashes 0.35 GB/s, a fifth of
// what a channel carries, and each message is hashed by its receiver, and by each of
// its source's replicas for each receiver; this one makes 7 GB/s in plain Go. Such a
// hash is as good as its key is secret, and here it is: nobody but the receiver knows
// the key until it has got the messages, and with the acknowledgement that reveals it
// the key is used up. A liar would have to change a message so that its digest stays
// the same under a key that is drawn later. The chance is one in 2^47 for 1 MiB.
// Not even 64 bits of SHA-256 without a key would be much better.
//
// A replica that is asked answers when the receiver has told it, too, what it has got:
// who disputes a message may lie about that. Of a message that it has forgotten, since
// all have acknowledged it, it can say no more than that it was the same as the receiver
// told; so a receiver that lies late, to one replica alone, may have that one voted out. Who
// is at fault a process cannot say. It says what it has produced (Output.Diverged)
// and whoever makes the views judges: peer/job. Of what a replica cannot know it says
// nothing: not of messages that a receiver has acknowledged on a channel that broke
// twice, or when it had left and they were forgotten, nor of those of a replica that
// is behind by some millions.
//
// What a replica does otherwise is found by the messages it sends. One that calls
// Recv where its master calls Send lacks a message: its next one to the same
// destination in the same context has the wrong number and is found. If there is
// none, or it sends one in excess, which its master does not and nobody acknowledges,
// that is in its Sums: how many messages it has sent in each stream, with a digest of
// their tags and lengths, and of the payloads of those to itself. They are compared
// when processes have finished, by whoever makes the views. A process that has gone on
// from a checkpoint has none. An outcome that a master has made up (Wtime, Rand) is the
// same at all replicas and no divergence.
//
// # Determinants
//
// The master decides each nondeterministic call and proposes the outcome to the
// live replicas of its rank. When all of them that count have it, the determinant is
// stable: the master shows it to its program and tells the replicas, which show
// it to theirs. A replica that becomes master first asks the others what they
// hold (Sync). They answer once their own view names it master too, and from
// then on refuse the old one. What it learns it proposes anew, and decides by
// itself only after the last answer.
//
// The view may name another master though the old one lives: the replica that is
// ahead, so that a slow machine does not slow its rank. The old one is asked like
// the others, and answers when its own view names the new one; from then on it
// neither decides nor transmits. It may become master again. Each time is a term of
// its own, numbered by the epoch in which it began (View.Since), and questions and
// answers carry the term: an answer of an earlier one is worth nothing.
//
// # A replica that does not answer
//
// A silent replica would hold up its rank until it has failed. So the view may set it aside: outcomes are then
// stable without it, at the replicas that count. It stays live, and gets every outcome, only later. It cannot
// be master, since it may lack outcomes that the others have seen. A view records the epoch in which it was set
// aside (View.Aside), and only another view lets it count again:
//
//	0.0 master                      0.1, aside since epoch 7
//	 | ... stable without 0.1, held here and at 0.2 ...
//	 | <-- Ready 7 -------------------|   it has seen the view in which it is aside
//	 |--- Determinant, ... ---------->|   outcomes wait for it from now on
//	 | <-- DeterminantAck, ... -------|
//	 |--- UpToDate 7, term 1 -------->|   nothing is held that it lacks
//	view 9: 0.1 counts <--------------|   it requests that with the statement
//
// Outcomes that are stable without 0.1 stay held, at the master and at each replica that has them, until 0.1
// has them too or has failed; so a process with such outcomes does not finish. If they exceed maxSpared,
// outcomes wait for 0.1 again.
//
// UpToDate stays true: since Ready no outcome has become stable without 0.1, and none does unless 0.1 is set
// aside again, in another epoch. The view accepts the statement only in the term of the master that made it.
//
// If the master fails while 0.1 is set aside, another replica that counts becomes master, and asks 0.1 as it
// asks all. If none is left, 0.1 fails too and the rank is lost (R7), unless a replica has finished: that one
// waited until 0.1 lacked nothing.
//
// # Why no effect leaves before its determinant is everywhere (R4)
//
// No program, of a master or of a replica, sees an outcome before it is stable.
// So whatever a process does, be it a message, a line of output or a file,
// depends only on outcomes that each counting replica of its rank has, whichever of them
// becomes master next and however many fail. A replica could see an outcome on
// arrival instead, one message earlier, but with r >= 3 it could then become
// master, print, and fail before a third one has heard of the outcome; that one
// would decide otherwise. A replica is not on the critical path, and waits.
//
// No two masters get different outcomes of one point to live replicas. The
// second waits for the answer, in its own term, of every process that is live in its
// view. Each of those has refused the first since before it answered, and has told all
// that it held, and so have replicas that are set aside. So either a process held the
// first's outcome, and it is taken over, or no live process has it or ever will. If the
// first itself is live it has answered too. It holds the outcomes that it has proposed
// and not made stable. Those that it has made stable are at every replica that counts,
// and it holds them for the others. It decides nothing after its answer, and before it is
// master in a later term, for which the second has to answer in turn. A process
// that is handed the view of that term without those in between has answered nobody
// in between; so nobody has decided.
//
// What an old master has sent when its term ended may arrive at any time later.
// Messages are numbered, and the new one sends all that is not acknowledged: what
// comes twice is dropped. Determinants are refused from whoever is not master, and
// are no breach: the sender holds them, and has told them. Nor does an old master's
// word count that one is stable: the new one may have proposed it anew, and wait for it
// to be held. That a replica has an outcome stays true in every term.
//
// # A new replica
//
// A view may have a process that is new in a rank that runs. Its program starts
// from the beginning, and the protocol gives it what has reached the rank so far,
// as fast as it takes it: the rank's past, out of the log of its master.
//
//	0.2 new      0.1 master     1.0, 1.1
//	 | <-- Greet ----|              |   each has 0.2 in its view from now on
//	 | <-- Ack, Greet --------------|   and says what it has of rank 0
//	 |--- Recall --->|              |   when all have greeted
//	 | <--- Past ----|              |   piece by piece, until there is no more
//	 |--- Ack, Greet -------------->|   what it has; and what it lacks, please
//	 | <-- Data --------------------|
//
// There is no gap in the messages. A process keeps from its greeting on what the new
// replica lacks. What it has forgotten before, the master has acknowledged before
// and keeps in its log, so that it is in the past that is asked for afterwards. A
// process that was failed without having greeted forgets more, but the replicas of
// its rank do not; and one that has finished had all its messages acknowledged
// before. Nothing comes twice, since messages are numbered. What the new replica sends
// meanwhile, others have: they have said so, and it neither keeps nor sends it.
//
// There is no gap in the outcomes either. An old master makes none stable without the
// new replica after its greeting. Before, the one that is asked held it, and has
// shown it, so that it is in the past, or has proposed it to the new replica: it
// answers only once it decides, which it does after it has proposed all that it
// holds, and once the new replica has that. So a replica that is whole (it has the past to its end) knows all that any
// program of its rank has ever seen, and may become master, however far its own
// program is. One that is not never does: when nobody is left to tell it the past, it
// gives up. If the master changes, the past is told anew by the next, and what
// was there already is dropped.
//
// # A checkpoint
//
// A program can say what it needs to go on from a point at which nothing of it is under
// way. The past then has, in place of all that came between the program's first such point
// and the last, its state and a Snapshot (checkpoint.go). A new replica relives what came before
// the first; its program gets there; then it takes the place of the one that made the
// checkpoint, and relives what came after the last.
//
//	prologue | state, snapshot | what came after
//	   |              |               +--> as ever
//	   |              +--> Resume, when the program is at its first checkpoint
//	   +--> as ever
//
// It is then as if it had done itself what the snapshot says. Messages: those that the
// master had forgotten, every replica of the destination has acknowledged, or gets out of
// its own rank's past, which has them, as above; the others are in the snapshot, and it
// keeps them like the master, whatever others have told it of them. What had been
// received is received; what the program had not taken yet is in the snapshot. So there is no gap
// and nothing comes twice. Outcomes: all points up to the last that the program had come to are
// stable and seen; what it holds of those itself, it never shows. The others are shown, and in the
// past behind the snapshot, or proposed to it. So R1 to R4 hold as for one that has relived all.
//
// The snapshot is made when the state has been saved, in one step, and the past goes on
// behind it. Nobody forgets a past that a new replica reads; if the master changes
// meanwhile, and one of the two pasts has a checkpoint, the new replica gives up: what
// it has taken of one does not fit the other. It counts for nothing yet, and another
// takes its place.
//
// # What is not promised
//
// The package does not detect failures and does not make views; it believes
// the one authority that numbers them. What is remembered per context (next
// numbers, ranges of decided points) is small but stays as long as the process.
package replication

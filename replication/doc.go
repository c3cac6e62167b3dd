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
// # Determinants
//
// The master decides each nondeterministic call, proposes the outcome to the
// live replicas of its rank, and shows it to its own program only when all of
// them have it: the determinant is then stable. A replica's program sees it on
// arrival. A replica that becomes master first asks the others what they hold
// (Sync). They answer once their own view names it master too, and from then on
// refuse the old one. What it learns it proposes anew, and decides by itself
// only after the last answer.
//
// # Why no effect leaves before its determinant is everywhere (R4)
//
// The only effect that leaves a rank is a Data frame: acknowledgements say what
// has arrived, and arrival depends on no outcome of the receiving rank. Only a
// master sends Data frames. There are three kinds of outcome that a message of
// a master can depend on:
//
//  1. It decided or learnt the outcome as master. Its program sees it only when
//     it is stable.
//  2. It got the outcome as a replica, and knows that it is stable.
//  3. It got the outcome as a replica, and does not know. With r >= 3 another
//     live replica may lack it, and if this process now spoke and failed, that
//     one could become master and decide otherwise: the message would be an
//     orphan. So a new master that has such outcomes (it is exposed) lets no
//     Data frame out, neither from its backup table nor new ones, until all of
//     them are stable. The backup table holds the sends meanwhile.
//
// The third set only shrinks after the takeover, so the gate opens once and for
// all. Acknowledgements, Sync and proposals pass it, hence it does open: each
// live replica answers without regard to its program, and one that does not
// answer is failed by the view.
//
// No two masters get different outcomes of one point to live replicas. The
// second waits for the answer of every process that is live in its view. Each
// of those has refused the first since before it answered, and has told all
// that it held; so either someone held the first's outcome, and it is taken
// over, or no live process has it or ever will.
//
// # What is not promised
//
// The package does not detect failures and does not make views; it believes
// the one authority that numbers them. Output other than messages (standard
// output, files) is the engine's: while Retained is not 0, an outcome that the
// program has seen may not be everywhere yet. What is remembered per context
// (next numbers, ranges of decided points) is small but stays as long as the
// process.
package replication

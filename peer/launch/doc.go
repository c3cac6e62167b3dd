// Package launch is the peer's side of a job: it stages the job's files, starts
// its processes, each in a scratch folder of its own, carries their output and
// their channels, watches them, kills them and leaves nothing behind.
//
//	submitter's peer                      this peer
//	  peer/job ====== control stream ======= job (one goroutine) ──── reservation, filetransfer,
//	                                          │                       faultdetect
//	                          ┌───────────────┼───────────────┐
//	                          │ line          │ stdout,stderr │ life pipe
//	                          v               v               v
//	                       program  <────────────────────  supervisor
//	                          │ channel: ring, TCP or pipe
//	another peer ── TCP, or channel stream and bridge
//
// One goroutine owns each hosted job. Whatever happens to the job, a message of
// the submitter, of a process, a verdict of the fault detector, a broken stream,
// reaches it as an event, so what follows from it is written without locks and
// in the order in which it happens.
//
// # A job's life here
//
//	staging   Prepare: signature checked, key redeemed, files fetched and laid out
//	staged    Prepared was said; the submitter starts the job, or says that it waits for others
//	starting  Start: every process under its supervisor (package internal/supervisor)
//	running   Started was said; processes meet in mpj.Init, then Begin
//	ending    processes killed, scratch removed, slots free
//
// A job ends when the submitter says Stop or leaves, when it turns out that the submitter's process has ended or
// its peer has failed, when this peer is cut off from the majority of those who agree on the job's
// views (package viewgroup, V2), when the submitter breaks the order above, when its owner stops
// it or needs the machine (stop.go, pause.go), and when this peer closes. A control stream that just breaks is made anew, and the submitter's machine is asked
// meanwhile whether it still runs (attachment.go). Where peers agree on the job's views it goes on without a
// submitter that is silent, or was killed and has said that it may come back (alone.go); that
// ends too, after a time that the submitter has asked for, of an hour at most.
// Nothing of it is left then (S4): no process, no descendant of one, no file, no
// stream, no pin, no slot. If this peer is killed instead, the supervisors do
// that, and NewService removes what even they left.
//
// # Output
//
// What a process writes is cut into records and kept until the user has it
// (package internal/outbox); only the replica that speaks for its rank in the
// current view sends (R6). A program that writes faster than the user reads is
// made to wait once a mebibyte of its output is under way.
//
// # Channels
//
// A process has no network rights. It asks for a channel to another process and
// is handed a descriptor, of the first kind that the user and both owners allow
// and that can be (choose.go):
//
//	shm     a ring of shared memory, if both run on this peer
//	tcp     a TCP connection, if one peer can connect to the other's entrance
//	        (package internal/entrance); the processes speak TLS on it, with the keys that the
//	        membership table has of them
//	stream  one end of a pipe, whose other end goes to the other process
//	        when it is on this peer too, and is bridged to a libp2p stream to its
//	        peer when it is not
//
//	asking peer (reach.go)             answering peer (serve.go)
//	   |== stream: Open{from, to} =====>|  in the view? of that peer?
//	   |<== Answer{token, addresses} ===|  expected at the entrance
//	   |-- TCP: token ----------------->|
//	   v  Channel + descriptor          v  Accept + descriptor
//	process <========= TLS =========> process
//
// Either peer checks the other against the job's membership table, so no one can
// speak for a process that it does not run, and a process that has failed in the
// view is spoken to by nobody (R5). What has been handed over whole, rings and
// TCP connections, the peer cannot break any more: the engine of the process does
// when the view says so, and the failed process is killed by its own peer. A
// direct connection that cannot be made costs a second, once; then the peers
// bridge, and try again half a minute later.
//
// # Limits
//
// What the owner grants a job and each of its processes (package limits) is held by
// control groups (package internal/cgroup), by resource limits that the supervisor sets, by a
// guard that measures (guard.go), and by having all that goes to other machines go through
// this peer (pace.go). Who exceeds a limit is ended, and the submitter reads which.
//
// # Not promised
//
// A submitter that has a job staged and says again and again that others still stage keeps its
// slots as long as it says so, although nothing runs: this peer cannot know better.
//
// Where a wall cannot be built (package internal/sandbox) a program that the owner lets in
// all the same has what is left, and may stop or kill its own supervisor; that ends it.
package launch

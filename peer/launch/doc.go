// Package launch runs this peer's part of a job. It stages the job's files and starts its processes, each
// in its own scratch folder. It forwards their output, connects their channels, watches them, kills them,
// and removes everything afterwards.
//
//	submitter's peer                      this peer
//	  submit ======== control stream ======= job (one goroutine) ──── reservation, filetransfer,
//	                                          │                       faultdetect
//	                          ┌───────────────┼───────────────┐
//	                          │ control socket│ stdout,stderr │ life pipe
//	                          v               v               v
//	                       program  <────────────────────  supervisor
//	                          │ channel: ring, TCP or pipe
//	another peer ── TCP, or channel stream and bridge
//
// One goroutine owns each hosted job. Messages of the submitter and of processes, verdicts of the fault
// detector and broken streams all reach it as events. It handles them in the order in which they happen,
// without locks.
//
// # A job's life here
//
//	staging   Prepare arrived: signature checked, key redeemed, files fetched and laid out
//	staged    Prepared sent; the submitter starts the job, or reports that it waits for other peers
//	starting  Start arrived: every process starts under its supervisor (package process/supervisor)
//	running   Started sent; processes meet in mpj.Init, then Begin
//	ending    processes killed, scratch removed, slots free
//
// A job ends in each of these cases:
//
//   - the submitter sends Stop or leaves;
//   - the submitter's process has ended, or its peer has failed;
//   - this peer is cut off from the majority of the job's view group (package viewgroup, V2);
//   - the submitter violates the order above;
//   - the owner stops the job or needs the machine (owner.go);
//   - this peer closes.
//
// If a control stream merely breaks, the submitter opens another one. Meanwhile this peer asks the
// submitter's machine whether the submitter still runs (submitter.go). A job with a view group continues
// while its submitter is silent, or after the submitter was killed, if it has announced that it may come
// back (presence.go). The submitter chooses how long, up to an hour.
//
// Nothing of the job remains afterwards (S4): no process and no descendant of one, no file, stream, pin or
// slot. If this peer is killed instead, the supervisors clean up, and the next NewService removes what they
// left.
//
// # Output
//
// The output of a process is split into records, and kept until the user has received it (package
// process/outbox). Only the output leader of a rank in the current view sends output (R6): a replica that
// has finished, or else the master (view.OutputLeader). A program that writes faster than the user reads blocks
// once a mebibyte of its output is in transit.
//
// # Channels
//
// Package switchboard connects the processes of the job with each other and with those of other peers.
//
// # Limits
//
// The owner grants resources to a job and to each of its processes (package limits). The limits are
// enforced by control groups (package confine/cgroup), by resource limits that the supervisor sets, and by
// a guard that measures (guard.go). Traffic to other machines passes through this peer, which limits its
// rate (pace.go). This peer ends a process that exceeds a limit, and tells the submitter which limit that
// was.
//
// # Not promised
//
// A submitter that has staged a job can keep its slots idle for up to an hour (maxStaged), as long as it
// reports that other peers still stage. This peer cannot verify that report.
//
// Where a sandbox mechanism is unavailable (package confine/sandbox), a program that the owner admits
// nonetheless runs without it. Such a program may stop or kill its own supervisor; this peer then ends the
// program.
package launch

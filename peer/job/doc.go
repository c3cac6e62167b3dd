// Package job is the submitter's side of a job: it finds and reserves slots,
// stages the files, starts the processes, watches them, and ends with an answer
// or a reason.
//
//	Run: discover -> reserve -> stage -> start -> watch -> collect -> release
//	        ^                     |       |        |
//	        +--- other peers -----+-------+        |
//	                                               |
//	   control streams of the job's peers ---------+   one each, open all the time
//	   fault detector (gossip among the peers) ----+
//	                                               v
//	                        watch (who lives, who is done) -> changes -> view group
//	                          ^                                              |
//	                          +------- views, agreed on <--------------------+--> peers
//	                        emission (output once) -> printer -> the user
//
// Whatever is heard of a process, from its peer, from a broken control stream or
// from the detector, becomes true for the job only by a new view, and views are
// numbered (promise V1). The submitter asks for the changes; where ranks have
// replicas, its peer and some of the job's agree on them (package viewgroup), and
// without their majority the job stops and says so (V2). A job without replicas, or
// on one peer beside the submitter's, has no such group: the submitter's word is
// the view. The job ends at the peers when the submitter says so, and when they find out that it has
// failed. Where views are agreed on, they go on without one that is only
// silent, which comes back to its job, and without one that was killed and has kept what
// another process needs to go on with it: keep.go, adopt.go. A control stream that breaks
// while the job is staged or runs is made anew: mend.go.
//
// The types watch and emission are pure cores. Submitter is the thin service that owns the
// streams and the clock. One goroutine, that of Submitter.Run, owns each job. It
// waits for nothing but the next event, and for the disk when it keeps the job: a peer
// that does not read, a user who does not, a file that is long on its way hold up
// themselves only.
//
// # When a peer is lost
//
//	while staging or starting   the attempt ends everywhere, and begins anew without the peer
//	while running               its processes fail in the next view; the job goes on with the other replicas
//	while collecting            the files come from another replica, which may still have to end
//	while releasing             it is not waited for
//
// # When this peer is cut off
//
// A silent peer is given up only while this one is in touch with the majority of those
// who agree on views; else it may be this one that nobody hears. Once it is in touch
// again, all who are left watch each other anew, in a group of the next generation:
// group.go. If that takes long, the peers go on by themselves, and control streams are made
// anew: away.go. If it takes too long the job ends.
//
// # When a replica is lost
//
// Another peer is looked for, as at the beginning, and a new replica started there,
// which the others bring up to date:
//
//	Lacks -> healing -> search -> recruit -> watch.Join -> view -> Healed
//
// # When replicas do not do the same
//
// Processes say when a receiver has got another message than they have produced
// (package replication). What follows is the watch's to decide, by the number of
// replicas that have produced each: diverged.go. Replicas that have ended account for
// all that they have sent and printed, and their peer says so: account.go. The submitter
// compares that with what the user has got, which it keeps as a digest for a later attach:
// transcript.go. A job that
// is done waits, in bounded time, until most live replicas of each rank have given the
// same account (hearout.go). Files of another replica than the one
// they are collected from are compared by their lists: files.go.
//
// # Not promised
//
// A rank with one replica may hang: if its peer stays connected and answers the detector, but the process never
// ends, the job lasts until the user's --timeout. Some replicas are not compared with others: suspended ones,
// the last one of a rank, and a third one that is far behind when the answer is confirmed.
package job

// Package submit is the submitter's side of a job. It finds and reserves slots, stages the files,
// starts the processes, watches them, and ends with a result.
//
//	Run: discover -> reserve -> stage -> start -> watch -> collect -> release
//	        ^                     |       |        |
//	        +--- other peers -----+-------+        |
//	                                               |
//	   control streams of the job's peers ---------+   one per peer, open during the whole job
//	   fault detector (gossip among the peers) ----+
//	                                               v
//	                        job.State (states of processes) -----> changes -> view group
//	                          ^                                                   |
//	                          +------- views, agreed on <-------------------------+--> peers
//	                        job.Emission (output once) -> EventQueue -> the user
//
// A peer, a broken control stream or the fault detector may report something about a process. Such a report takes
// effect only through a new view, and views are numbered (V1). The submitter requests the changes. Where ranks
// have replicas, the submitter's peer and some of the job's peers agree on them (package viewgroup). Without
// their majority the job stops with a message (V2). A job without replicas, or with only one peer besides the
// submitter's, has no view group: there, each change that the submitter requests takes effect at once.
//
// The job ends at the peers when the submitter stops it, or when they find out that it has failed.
// Peers in a view group continue while the submitter is silent, and the submitter reconnects later
// (disconnected.go). They also continue after the submitter's process was killed, if it kept what
// another process needs to resume the job (keep.go, resume.go). That process joins the view group as
// a member that is behind, so it continues as a submitter that was cut off. The submitter reopens a
// control stream that breaks while the job is staged or runs (reconnect.go).
//
// Package job decides; Submitter owns the streams and the clock. One goroutine, that of
// Submitter.Run, owns each job. It waits only for the next event, and for the disk when it records
// the job. A peer that does not read, a user who does not read, or a slow file transfer therefore
// delays nothing else.
//
// # Parts
//
// An execution handles the events of one job. It applies what its parts decide:
//
//	startup                     opened streams, staged files and started processes
//	membership, link            peers, their control streams, and which peer runs each process
//	outputs                     the output that the user gets; pure
//	EventQueue                  events that wait until the user has them
//	detectorGroup, viewGroup    this side of the two groups
//	partition                   changes of the view, while this process is behind the view group
//	recruitment                 new replicas for lost ones
//	confirmation, collector     the answer of a job that is done, and its files
//
// # When a peer is lost
//
//	while staging or starting   the attempt ends at all peers; another one starts without the lost peer
//	while running               its processes fail in the next view; the other replicas continue
//	while collecting            the files come from another replica, which may still have to end
//	while releasing             the submitter does not wait for it
//
// # When this peer is cut off
//
// The submitter gives up a silent peer only while it is in touch with the majority of the view
// group. Otherwise the submitter's own machine may be cut off. Once it is in touch again, the
// remaining peers form a new detector group of the next generation (group.go). If that takes long,
// the peers continue without the submitter, and the submitter reopens the control streams
// (disconnected.go). If it takes too long, the job ends.
//
// # When a replica is lost
//
// The submitter looks for another peer, as at the beginning, and starts a new replica there. The
// other replicas of the rank bring it up to date:
//
//	Lacks -> healing -> search -> recruit -> Recruited -> view -> Healed
//
// # When replicas diverge
//
// Package job decides disputes. The submitter keeps a digest of the output that the user has received, also in
// the record of the job, for a process that resumes it (transcript.go). A job that is done waits, for a bounded
// time, until most live replicas of each rank have given the same account (confirm.go). Collected files are
// compared with the file lists of the other replicas (files.go).
//
// # Not promised
//
// A rank with one replica may hang. If its peer stays connected and answers the detector, but the
// process never ends, the job lasts until the user's --timeout. Some replicas are not compared with
// others: suspended ones, the last one of a rank, and a third one that is far behind when the
// answer is confirmed.
package submit

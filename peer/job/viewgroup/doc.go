// Package viewgroup keeps the views of a job consistent among its peers. All peers that have a view of some
// epoch have the same one (promise V1). A partition with less than a majority of the voters creates no view
// (V2).
//
//	         submitter's peer      peer 1        peer 2    peer 3 ...
//	         member (voter)        member        member    learner
//	Propose ──> log ═════════════ log ══════════ log ─────> log
//	             │ committed       │              │          │
//	             v                 v              v          v
//	           view              view           view       view
//
// The log is a Raft log, implemented by go.etcd.io/raft. Each entry is one Proposal, signed by its author:
// for instance, that a process has finished or failed. Its effect depends on the author (see Proposal). The
// submitter decides about every process, and a peer about its own processes. The failure of another peer's
// process requires a majority of jurors (V4).
//
// A view is the result of applying the committed changes to the job's first view. Each effective change
// starts a new epoch, so equal logs yield equal views. All peers of the job have the log. A few of them,
// the members, vote: the submitter's peer and the next ones in the job's order, an odd number in total. If
// all processes of a member have failed, another peer replaces it. Peers that come while the job runs
// receive the log too. They become members when one is missing: see Newcomer.
//
// The submitter's peer leads whenever it can. If it is silent for as long as a cut-off takes, it loses its
// vote until it is back. A peer that has left the job is removed from the group. The group then tolerates
// the loss of another member. Each member reports its contact with the majority. InTouch is the normal
// state. Absent means that the silence of other peers may be its own fault. CutOff means that it has to
// stop.
//
// Member is the pure core: it receives messages, ticks and proposals, and returns the messages to send and
// the committed changes. Service runs it over libp2p.
//
// A peer receives the views in order, and may lag behind. Each view follows from the previous one by a
// Change. Package replication relies on nothing else. For small groups, TestEveryInterleaving explores
// every order of proposals, messages, elections, a newcomer known to one or several members, a crash and a
// cut. Random tests cover larger groups.
//
// Nothing is stored on disk. A peer that has crashed has failed permanently within its job, and does not
// come back with an empty log under its old number.
//
// # Limits
//
// There is no progress without a majority of the members. A job on one peer and the submitter's peer
// therefore has no group; the submitter alone creates its views. If two of three members crash at the same
// moment, the job ends.
//
// Views may differ if the leader of the log violates the protocol. Raft tolerates crashes, but not a leader
// that sends different logs to different peers, or removes members that are alive. Such a leader can
// withhold entries, but it cannot forge them: every member checks the signature of each entry.
package viewgroup

// Package viewgroup keeps a job's views agreed: whoever has a view of some epoch
// has the same one as everybody else (promise V1), and where a partition leaves
// less than a majority no view is made at all (V2).
//
//	         submitter's peer      peer 1        peer 2    peer 3 ...
//	         member (voter)        member        member    learner
//	Propose ──> log ═════════════ log ══════════ log ─────> log
//	             │ committed       │              │          │
//	             v                 v              v          v
//	           view              view           view       view
//
// The log is that of Raft, by go.etcd.io/raft. Each of its entries is one Proposal, signed by its author:
// a process finishes, or fails. What it does depends on the author (see Proposal): the submitter decides, and
// a peer about its own processes; that another peer has failed takes a majority of jurors (V4). A view is what the committed changes make of
// the job's first view, one epoch for each that changes something, so equal logs
// are equal views. All peers of the job have the log; a few of them, the members,
// vote: the submitter's and those that were named next, as many as make an odd
// number. A member whose processes have all failed is replaced by another peer. Peers
// that come while the job runs get the log, too, and are members when one is missing: see
// Newcomer.
//
// The submitter's peer leads whenever it can. One that is silent for as long as makes it cut
// off votes no more until it is back, and one that is known to be gone is none of the group:
// so the loss of another member is borne then, too. Each member says how it stands to the
// majority: in touch; absent, so that the silence of others may be its own; or cut off,
// so that it has to stop.
//
// Member is the pure core: it learns of messages, ticks and proposals, and says
// what to send and what has been committed. Service runs it over libp2p.
//
// A peer has the views one after the other, and may be behind. That, and that each
// follows from the one before by a Change, is all that package replication relies on.
// Every order of proposals, messages, elections, a newcomer of whom one or several are told, a
// crash and a cut is tried for small groups (TestEveryInterleaving), and larger ones at random.
//
// Nothing is stored on disk: a peer that has crashed has failed for good within its
// job, and does not come back with an empty log under its old name.
//
// # Not promised
//
// Progress without a majority of the members: a job on one peer and the submitter's
// has no group for that reason, and the submitter alone makes its views. Two
// members of three that crash at the same moment end the job.
//
// Equal views where the peer that leads the log lies about its order: Raft tolerates crashes, not
// a leader that sends different peers different logs, or removes members that are there. It can
// withhold entries, but not forge one: every member checks each entry's signature.
package viewgroup

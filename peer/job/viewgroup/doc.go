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
// vote until it is back. If its process is killed, the next one joins as a newcomer, under another number (see
// Newcomer). A peer that has left the job is removed from the group. The group then tolerates the loss of
// another member. A voter that ends its part of the job asks the leader to be replaced, and remains a voter until then
// (Group.Leave). Each member reports its contact with the majority. InTouch is the normal state. Absent
// means that the silence of other peers may be its own fault. CutOff means that it has to stop.
//
// # Members that lie
//
// The Raft library trusts every message. A Member passes it only messages that signed statements justify
// (V4): a term needs the pre-votes of a majority of the voters, a leader their votes, and a committed entry
// their acknowledgements. Statement lists these rules. The submitter's peer is trusted, since the job is its
// own. A change of the membership that no correct leader proposes has no effect (lawful). A change of the voters shows
// that the previous one is committed. Each peer therefore knows who votes, and can be a candidate (voterChange).
//
// An elected leader can still send different logs to different peers. Each entry is therefore chained to the
// entries before it by a hash, and the leader signs the hash of its log. The voters show each other what the
// leader has signed, and accept no other entries. A peer compares it with its own log only (claim, attest). If the
// leader has signed another log, the peer ends its part of the job with the name of the leader (blame, Group.Err),
// and shows the signatures to all others once more (takeConflict).
//
// A leader can also send the submitter's peer nothing, or heartbeats without entries. That peer then asks the
// other voters. They relay the entries that the leader has signed, and the submitter's peer takes the leadership
// if it has a vote. Otherwise it orders a voter to be a candidate.
//
// Member is the pure core: it receives messages, ticks and proposals, and returns the messages to send and
// the committed changes. Service runs it over libp2p.
//
// A peer receives the views in order, and may lag behind. Each view follows from the previous one by a
// Change. Package replication relies on nothing else. For small groups, TestEveryInterleaving explores
// every order of proposals, messages, elections, a newcomer known to one or several members, a voter that
// leaves, a crash and a cut. Random tests cover larger groups.
//
// Nothing is stored on disk. A peer that has crashed has failed permanently within its job, and does not
// come back with an empty log under its old number. Only the submitter comes back, under a new number.
//
// # Limits
//
// There is no progress without a majority of the members. A job on one peer and the submitter's peer
// therefore has no group; the submitter alone creates its views. If two of three members crash at the same
// moment, the job ends. If only the submitter's peer and one other are left after a voter has left, only
// the submitter's peer votes. A group of one voter that becomes one of three has two for a round trip. If it
// loses either of them then, the job ends.
//
// A leader that lies can withhold entries, or order the changes of other peers as it likes. It can take the vote of
// the submitter's peer or keep it out, until that peer orders an election, some six seconds later. The order has no
// effect without a majority of the voters beside the leader. It can give a peer that is lost a vote, so that the group
// tolerates one loss fewer; of three voters, both others are then not enough. It can give two peers different views if
// it finds a majority of the voters, itself included, for each of them; with an even number of voters, half may
// suffice. Voters that have both views find that when they next show each other their logs, 0.3 s later.
//
// A voter that forgets what it has acknowledged can have the same effect. A peer then stops when it hears that
// the leader lacks what was agreed on, without the name of the liar. So does a peer with entries of a former
// leader that lied, if the other peers have other ones: it gets no further entries and is cut off.
//
// A peer that got pre-votes in a time without a leader can use them later, for at most eight terms: to end the
// term of a leader, and to lead if the others vote for it.
//
// A submitter's peer that hears other voters but not the leader takes the leadership, also if only the link
// between the two is down. The former leader, which does not hear it either, is then cut off.
//
// A majority of voters that lie together can do whatever the leader of a Raft log can do: expel processes by
// order and omission, though not in another peer's name. Two that lie together can deceive a peer that hears
// no leader about who votes. If one of the two leads, they can show its followers entries as committed that
// are not.
//
// A relayed message has room for 128 KiB of the log, and relayed entries end with one that the leader has signed. A new
// process of the submitter therefore gets no longer log, and no log of a former process that led, from a single peer
// that is left. While a majority is left, it gets each log from the leader.
//
// A leader that lies can therefore keep other peers from relaying: it signs nothing in its term, so that they accept no
// entries, or its log is longer. A new process of the submitter then knows only the first voters. It orders no election
// if others have replaced so many of them that it does not hear a majority.
//
// A peer that was cut off while two or more voters changed rejoins if two other peers confirm who votes now.
// If only one is left, it does not rejoin.
package viewgroup

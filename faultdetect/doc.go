// Package faultdetect finds out which peers of a job have failed, by gossip,
// and which processes of this machine hang.
//
// The peers of a job and the submitter's peer form a group of n members in an
// order known to all. Each keeps a table of heartbeats, one per member. Once
// per period a member increments its own and sends the table to one other;
// tables merge by maximum. The target of a round is that of double binary
// round robin (DBRR), so that after any ⌈log₂ n⌉ rounds everybody has news of
// everybody, along two different trees:
//
//	round    1   2   3   4   5   6   then again       n = 8
//	target  +1  +2  +4  -1  -2  -4                    2⌈log₂ n⌉ = 6
//
//	                 Tick, Receive, Report
//	 ticker, inbox ------------------------> Detector      pure
//	      ^                                     |
//	      |            Send, Verdicts           |
//	      +--- Group <--------------------------+
//	            |  one writer per target
//	            v
//	        libp2p streams, kept open
//
// # From silence to failed
//
// A member is live until its last known heartbeat is 2⌈log₂ n⌉ periods old;
// then it is suspect, and asked directly (four times in one period). Any sign
// of life makes it live again: an answer, a table from it, a newer heartbeat
// through others. Without one it is failed, for good, 2⌈log₂ n⌉ + 1 periods
// after its last heartbeat (promise F1). The four questions are what keeps 5 %
// of lost messages from ever failing a member (V3). Somebody who has a better
// reason to suspect a member, such as a closed connection, says so with Report,
// and the questions start at once.
//
// Failed members get no gossip: distances are counted in live members. The
// round stays that of all n, since survivors learn of a failure at different
// times and must agree on the round. Simply leaving out the messages to failed
// members, as in the literature, cuts survivors off from each other: of the
// 255 sets of crashes among 8 members 196 leave some pair without news for
// 2⌈log₂ n⌉ periods, of those among 16 nearly all. Counting live members, news
// takes ⌈log₂ n⌉ periods again whoever has crashed, so the detector outlives
// the application (F3); the tests try all sets of crashes.
//
// # Time
//
// The age of a heartbeat is the difference of counters, so counters are
// aligned: the submitter puts one offset into the start message, and every
// member starts its Detector from it on receiving that message. A peer whose
// clock runs slow, or whose start message was late, catches up by one heartbeat
// in sixteen periods; until then it is questioned now and then, not failed. A
// member of which nothing was ever heard is given 10 extra periods to start.
// An observer counts only the periods in which it ran: after having been
// stopped or starved it judges nobody by what it slept through, and asks all
// its suspects anew.
//
// # Not promised
//
// A peer that is stopped for more than 2⌈log₂ n⌉ - 1 periods may be failed, and
// after two more will be: it cannot be told from one that has crashed. Groups
// of two or three that must bear longer pauses need a longer period. Members are believed
// about each other: a lying member can keep a crashed one live for as long as
// it lies (it cannot fail a live one, which answers for itself), so gossip is a
// hint, and the job's control streams, which also announce at once a process
// that dies while its peer lives (F2), come first.
package faultdetect

// Package faultdetect finds out which peers of a job have failed, and which
// processes of this machine hang.
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
//	             Tick, Receive, Report, Silent, Gone
//	 ticker, inbox ------------------------> Detector      pure
//	      ^                                     |
//	      |            Send, Verdicts           |
//	      +--- Group <--------------------------+
//	            |  one writer per target
//	            v
//	        libp2p streams, kept open
//
// A table goes over its stream as what differs from the one before, which is
// nothing as long as nobody fails.
//
// # From silence to failed
//
//	            a table is late          asked in vain
//	+------+   (fast), no news   +---------+     +--------+
//	| live |-------------------->| suspect |---->| failed |-- accusation
//	+------+  for 2⌈log₂ n⌉,     +---------+     +--------+   to all
//	   ^      reported, accused       |
//	   +------------------------------+
//	      any sign of life, by whomever
//
// What makes a suspect:
//
//   - Fast (the default mode). In a round of DBRR everybody knows from whom the
//     next table must come; and from the heartbeats that it has seen, when. One
//     that is missing makes its sender suspect at once. How late it may be is
//     learned for each link: four mean deviations from when its tables came so
//     far, as in TCP's retransmission timer, but at least a quarter of a period,
//     for the processors of busy machines, and at most a whole one. Every
//     member is expected by somebody in every round, so the time to find out
//     does not depend on n.
//   - No news of a member for 2⌈log₂ n⌉ periods, in mode Gossip the only reason,
//     and what holds when everything else fails.
//   - Report: the caller has a reason, such as a connection that closed.
//   - Silent: the caller has missed other messages of that member, such as the words
//     of a peer whose job starts.
//   - An accusation by another member.
//
// A suspect is asked, eight times in a period, and through two others (the
// indirect probe of SWIM); any sign of life makes it live again: an answer, a
// table from it, a newer heartbeat through others, the word of one of the two.
// Without one it is failed, for good: after a period and twice its round trip,
// which makes 3 periods since it fell silent, or 2⌈log₂ n⌉ + 1 by gossip alone
// (promise F1). A longer tolerated hang takes the place of that period, counted
// from when the missing table was due; by gossip it is added. Eight questions and four through others
// are what keeps 5 % of lost messages from ever failing a member (V3).
//
// Whoever fails a suspect says so to all others, along the two binary trees
// whose edges DBRR sends its tables on: to +1, +2, +4, … and to -1, -2, -4, …,
// each of which tells those between it and the next. Each receiver passes it on
// before all else, and then asks the accused itself for a quarter of a period:
// no member can fail another by its word. What is known for certain (Gone:
// somebody saw it end) takes the same way, so that a process that is killed while
// its machine lives is known to all within a second, whatever n (F2).
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
// member of which nothing was ever heard is given 20 extra periods to start,
// and its tables are not missed before. While a job starts its peers also speak on
// their control streams, so the submitter reports one that does not (Silent).
//
// # An observer that is itself in trouble
//
// An observer counts only the periods in which it ran. After missing ticks it
// gives suspects that time back, and what should have come meanwhile a new
// allowance; for every period with such a gap it waits longer for everything, up
// to nine times as long, and recovers with every period without (Lifeguard's
// local health). One that has heard from nobody while it asked a suspect, though
// two others were to answer at once, takes the fault to be its own: it doubts
// itself more, asks again through others, and leaves the rest to gossip.
//
// # Not promised
//
// A peer that is stopped for longer than the tolerated hang and a period may be
// failed, and after two more will be: it cannot be told from one that has
// crashed. Two members that do not hear each other have no third one to ask in a
// group of two. Members are believed about each other: a lying member can keep a
// crashed one live for as long as it lies (it cannot fail a live one, which
// answers for itself), so gossip is a hint, and the job's control streams, which
// also announce at once a process that dies while its peer lives, come first.
package faultdetect

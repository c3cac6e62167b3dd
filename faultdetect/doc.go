// Package faultdetect detects which peers of a job have failed, and which processes of this machine hang.
//
// The peers of a job and the submitter's peer form a group of n members in an agreed order. Each keeps a
// table of heartbeats, one per member. Once per period a member increments its own heartbeat and sends
// the table to one other member; tables merge by maximum. The target of a round is that of double binary
// round robin (DBRR). So after any ⌈log₂ n⌉ rounds every member has news of every other, along two
// different trees:
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
// A table is encoded as the difference to the previous table on its stream, which is empty as long as no
// member fails.
//
// # From silence to failed
//
//	            a table is late          no answer
//	+------+   (fast), no news   +---------+     +--------+
//	| live |-------------------->| suspect |---->| failed |-- accusation
//	+------+  for 2⌈log₂ n⌉,     +---------+     +--------+   to all
//	   ^      reported, accused       |
//	   +------------------------------+
//	      any sign of life, direct or indirect
//
// A member becomes suspect for one of these reasons:
//
//   - Fast (the default mode): a table is late. In a round of DBRR every member knows which member sends
//     it the next table, and estimates from earlier heartbeats when that table arrives. If the table is
//     missing, its sender becomes suspect at once. The allowance is learned for each link: four mean
//     deviations of the arrival times, as in TCP's retransmission timer. The allowance is at least a
//     quarter of a period, for the processors of busy machines, and at most one period. In every round,
//     some member expects a table of each member, so the detection time does not depend on n.
//   - No news of a member for 2⌈log₂ n⌉ periods. In mode Gossip this takes the place of late tables; in
//     mode Fast it is the fallback.
//   - Report: the caller has a reason, such as a closed connection.
//   - Silent: the caller has missed other messages of the member, such as those of a peer whose job
//     starts.
//   - An accusation by another member.
//
// A suspect is asked eight times per period, and also through two other members (the indirect probe of
// SWIM). Any sign of life makes it live again: an answer, a table from it, a newer heartbeat through
// others, or a confirmation by one of the two. Otherwise it becomes failed, which is final, after a
// period and twice its round trip. That is 3 periods after it became silent, or 2⌈log₂ n⌉ + 1 by gossip
// alone (promise F1). A longer tolerated hang replaces that period and counts from when the missing table
// was due; by gossip alone it is added. With eight direct questions and four indirect ones, 5 % of lost
// messages never fail a member (V3).
//
// A member that fails a suspect after a late table or a Report sends an accusation to all others, along
// the two binary trees along which DBRR sends tables: to +1, +2, +4, … and to -1, -2, -4, …. Each
// receiver covers the members between it and the next. A receiver first passes the accusation on, and
// then asks the accused member itself for a quarter of a period. So no member can fail another by a mere
// claim. Certain knowledge (Gone: a member's end was observed) spreads in the same way. So all members
// know within a second of a process that is killed while its machine is alive, for every n (F2).
//
// Failed members get no gossip, because distances are counted in live members. The round remains that of
// all n members, since survivors learn of a failure at different times and must agree on the round. The
// literature only omits the messages to failed members, which disconnects survivors from each other. Of
// the 255 sets of crashes among 8 members, 196 leave some pair without news for 2⌈log₂ n⌉ periods; among
// 16 members, nearly all sets do. Counting live members, news takes ⌈log₂ n⌉ periods again, whichever
// members have crashed. So the detector outlives the application (F3); the tests try all sets of crashes.
//
// # Time
//
// The age of a heartbeat is a difference of counters, so the counters are aligned. The submitter puts an
// offset into the start message, and every member starts its Detector from that offset on receiving the
// message. A peer whose clock runs slow, or whose start message was late, catches up by one heartbeat in
// sixteen periods. Until then it is occasionally suspected and asked, but not failed. A member without
// any sign of life yet has 20 additional periods to start, and no table of it is expected before its
// first sign of life. While a job starts, its peers also send messages on their control streams, so the
// submitter reports a silent peer (Silent).
//
// # An observer with problems of its own
//
// An observer counts only the periods in which it ran. After missed ticks it extends the time of its
// suspects and restarts the allowance of expected tables. Each such gap lengthens all its timeouts, to
// nine times their length at most. Each period without one shortens them again (Lifeguard's local
// health). If an observer heard from no member while it asked a suspect, although two others should have
// answered at once, it assumes a fault of its own. It then reduces its health, asks again through other
// members, and leaves the decision to gossip.
//
// # Not promised
//
// A peer that is stopped for longer than the tolerated hang plus one period may be failed, and after two
// more periods is failed. Such a peer cannot be distinguished from a crashed one. A group of two has no
// third member to ask when the two do not hear each other. Members trust each other's news. So a lying
// member can keep a crashed one live for as long as it lies; it cannot fail a live one, which answers for
// itself. Gossip is therefore a hint. The job's control streams, which also report at once a process that
// dies while its peer is alive, take precedence.
package faultdetect

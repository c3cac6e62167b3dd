// Package deadlock finds ranks that wait for each other for ever. It is pure: it
// judges what ranks say of themselves, and starts, reads and sends nothing.
//
//	rank 0  waits for 1            0 -> 1 -> 2        nobody outside can release
//	rank 1  waits for 2 or 3           ^    |         0, 1 or 2, if 3 has ended
//	rank 2  waits for 1                +----+
//
// A rank goes on when any of its goroutines does, and a goroutine when any of
// the ranks that it waits for does what it waits for (the OR model of Chandy,
// Misra and Haas, 1983; who waits for several requests in turn waits for the
// first). So ranks are in deadlock when none of them waits for one that goes on,
// and nothing from those that they wait for is on its way: Find.
//
// What ranks say is no photograph: each speaks at its own time. So all are asked
// twice, the second time when all have answered the first. A rank that was
// waiting both times, in the same calls and with the same counts of frames, has
// done nothing between the rounds: at that moment all such ranks were in these
// states together.
//
// A goroutine that is not in a call of the library may call it next. Idle
// finds out, from a dump of all goroutines, whether there is one: whatever is
// not known to wait for other goroutines counts as going on. So what the
// package says is true; that it says it in every deadlock is not promised. A
// process with a goroutine that waits at a channel, say, may be waiting for a
// timer. Only what a function given to time.AfterFunc will do is not foreseen.
package deadlock

// Package deadlock finds ranks that wait for each other forever. It is pure: it judges states that
// ranks report, starts no goroutines and performs no I/O.
//
//	rank 0  waits for 1            0 -> 1 -> 2        no other rank can release
//	rank 1  waits for 2 or 3           ^    |         0, 1 or 2, if 3 has ended
//	rank 2  waits for 1                +----+
//
// A rank proceeds when any of its goroutines does. A goroutine proceeds when any of the ranks that
// it waits for acts (the OR model of Chandy, Misra and Haas, 1983). A goroutine that waits for
// several requests in turn waits for the first. Ranks are therefore deadlocked if none of them
// waits for a rank that proceeds, and no message from the ranks that they wait for is in transit.
// Find computes this set.
//
// The states are not a snapshot, because each rank reports at its own time. All ranks are therefore
// asked twice, the second time after all have answered the first. A rank that was waiting both
// times, in the same calls and with the same frame counts, was idle between the rounds. All such
// ranks were therefore in these states at the same moment.
//
// A goroutine outside the library may call the library next. From a dump of all goroutines, Idle
// determines whether there is such a goroutine: a goroutine counts as running unless it is known to
// wait for other goroutines. Reported deadlocks are therefore real, except that Idle cannot foresee
// the effect of a function given to time.AfterFunc. Not every deadlock is reported: for instance, a
// goroutine that waits at a channel counts as running, because it may be waiting for a timer.
package deadlock

// Package walk looks at all that is in a folder which somebody has filled who may mean harm, and who
// may be changing it.
//
//	Walk ── visit(".") ── visit("a") ── visit("a/b") ── visit("c") ──> nil, or why it has ended
//
// What that takes is bounded, whatever is there: each folder is opened from the one that it is in, few
// are open at a time, of each a few names are read at a time, and nothing else of those is kept that were
// visited. Symbolic links are visited and not followed, and folders that may not be looked into are given
// permissions, so a walk ends with all that is there. What is moved meanwhile may be visited twice, or not
// at all. How long a walk takes is for visit to bound: it may end it at any time.
package walk

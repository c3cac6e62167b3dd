// Package journal records the jobs on a peer, and their submitters, for the peer's owner. It writes one entry
// when a job begins here and one when it has ended, as lines of JSON in a file of the peer's home. The file
// survives restarts and crashes of the peer. Its size is bounded: when it reaches the limit, only the newest
// entries remain, up to half the limit.
package journal

// Package misconduct names peers in the log that break a protocol, or are refused,
// without letting them fill the log.
//
//	a stream ends -- Ended --> as streams end:       debug
//	                           garbage, or a stall:  warn, once a minute for each peer
//	more than is allowed -- Note ------------------> the same
//	no, to who asks -- Refused --------------------> info, once a minute for each peer
//
// Streams end in many ways that are nobody's fault: their peer has what it wants, is
// gone, or is cut off. What is nobody's way of ending is a message that is too long,
// cannot be read or is only half there, and a stream that was opened and then left.
//
// A Pace is that bound for what is no misconduct and has lines of its own.
//
// A Quota bounds what strangers hold of what is scarce, each to a share.
//
// How often who is named is decided by a pure core, the limiter; what it remembers is
// bounded, and when strangers are too many to be named each, one line a minute says
// how many.
package misconduct

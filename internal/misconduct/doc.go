// Package misconduct logs peers that violate a protocol or are refused, without letting them fill the
// log.
//
//	a stream ends -- Ended --> an ordinary end:      debug
//	                           garbage, or a stall:  warn, once a minute per peer
//	more than is allowed -- Note ------------------> the same
//	a request is refused -- Refused ---------------> info, once a minute per peer
//
// Streams end for many legitimate reasons: their peer has finished, has exited, or is disconnected. These
// are violations: a message that is too long, malformed or truncated, and a stream that was opened and
// then left idle.
//
// A Pace applies such a limit to log lines of other kinds.
//
// A Quota limits how much of a scarce resource each stranger holds.
//
// A pure core, the limiter, decides how often each peer is logged. Its memory is bounded. If there are
// too many strangers to log each of them, one line per minute reports their number.
package misconduct

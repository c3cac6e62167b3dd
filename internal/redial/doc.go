// Package redial clears libp2p's backoff after a failed dial, which starts at 5 s and grows. During the backoff a
// peer would not notice a restored link. The backoff also affects two peers that dial each other over TCP at the
// same instant, as the peers of a job do. Both dials fail: the two listening ports get only one connection (a
// simultaneous open), and both sides act as its client.
//
//	Allow, dial, random pause, Allow, dial, ...
//
// The package is for callers that pause between their attempts, for a random time if both sides dial.
package redial

// Package redial clears libp2p's backoff after a failed dial, which starts at 5 s and grows. During the
// backoff a restored link would not be noticed. It also affects two peers that dial each other over TCP
// at the same instant, as those of a job do. Both dials fail: between the ports that both listen on there
// is only one connection (a simultaneous open), and both sides act as its client.
//
//	Allow, dial, random pause, Allow, dial, ...
//
// It is for callers that space their attempts, at random if both sides dial.
package redial

// Package redial clears libp2p's backoff after a failed dial. The backoff starts at 5 s and grows. Meanwhile a
// peer would not notice that a link works again. The backoff is also harmful when two peers dial each other over
// TCP at the same instant, as the peers of a job do. Both dials fail: since each peer dials from the port on which
// it listens, the two dials make one connection (a simultaneous open), on which both sides act as the client.
//
//	Allow, dial, random pause, Allow, dial, ...
//
// The caller must pause between attempts. If both sides dial, the pauses must be random.
package redial

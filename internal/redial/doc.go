// Package redial lifts libp2p's pause after a dial that has failed, which is 5 s and
// grows. A link that is back would not be noticed meanwhile. And two peers that dial each
// other over TCP at the same instant, as those of a job do, both fail: from and to the
// ports that they listen on, it is one connection (a simultaneous open), of which both are
// the client.
//
//	Allow, dial, random pause, Allow, dial, ...
//
// It is for those whose tries are spaced, at random where both sides make them.
package redial

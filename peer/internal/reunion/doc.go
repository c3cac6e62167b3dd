// Package reunion keeps this peer connected to the peers of its jobs when a link fails for a while, or when
// a machine gets another address.
//
//	Service --- every second: connections, own addresses, answers --> watch
//	   ^                                                                |
//	   '--- probe a connection, drop it, dial a peer <------------------'
//
// Neither end of a TCP connection is told that the link has failed, or that the other end has a new
// address. Data waits for retransmissions at growing intervals. After the link recovers, it may wait for
// about as long again as the link was down. Therefore a connection on which nothing arrives after a probe
// is dropped.
//
// An answer may wait behind a file transfer, so other received bytes count as well, and so do acknowledged
// bytes. A probe on a circuit may wait behind other circuits of its relay. Until the probe has reached the
// relay, the relay's signs of life count.
//
// A connection is also dropped if it uses, or may use, an address that this machine no longer has. The peer
// is then dialled until it answers, or until no job needs it. A peer that is dialled by a peer to which it
// has an older connection probes the older one.
//
// Processes have their own connections between the same addresses. Config.Back is therefore called whenever
// a connection between their peers was lost, even if another one remained.
//
// Data in transit on a dropped connection is the responsibility of its user, which opens a new stream and
// repeats possibly lost messages. A missing answer does not mean that the peer has failed; only the fault
// detector decides that.
package reunion

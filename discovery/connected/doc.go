// Package connected decides which peers to stay connected with, dials them, and drops dead connections.
//
//	supernodes: schedule ------------\
//	known peers, mDNS: knownPeers ----+--> Service --+--> dial, at once or at growing intervals
//	peers of current jobs: watch -----|              |--> probe or drop a connection
//	this machine moves: moveDetector -/              '--> find more peers (Config.Meet)
//
// The four cores on the left are pure; the Service observes the host and the machine every second and
// carries out what they decide.
//
// Known peers are those met before, including before a restart, and those that mDNS found. Each of them can
// introduce this peer to the network, as a supernode does. A known peer that is not connected is tried
// again at growing intervals, for up to 30 days after the last meeting; one that was never met is given up
// sooner. So a peer that lost its link, slept or was away for a day finds the others again, and the parts
// of a split network join. When this machine moves, every peer is tried at once. A machine moves when it
// gets a new address, a cable is plugged in, or it wakes from sleep.
//
// Partners are the peers of current jobs. Neither end of a TCP connection is told that the link has failed,
// or that the other end has a new address. Data waits for retransmissions at growing intervals. After the
// link recovers, the data may wait for about as long again as the link was down. Therefore a partner's
// connection on which no bytes arrive after a probe is dropped.
//
// An answer may wait behind a file transfer, so other received bytes count as well, and so do acknowledged
// bytes. A probe on a circuit may wait behind other circuits of its relay. Until the probe has reached the
// relay, the relay's signs of life count.
//
// A partner's connection is also dropped if it uses, or may use, an address that this machine no longer
// has. The partner is then dialled until it answers, or until no job needs it. A peer that is dialled by a
// peer to which it has an older connection probes the older one. Processes have their own connections
// between the same addresses. The peer is therefore told (see KeepPartners) whenever a connection to a
// partner was lost, even if another one remained.
//
// Data in transit on a dropped connection is the responsibility of its user, which opens a new stream and
// repeats possibly lost messages. A missing answer does not mean that the peer has failed; only the fault
// detector decides that.
package connected

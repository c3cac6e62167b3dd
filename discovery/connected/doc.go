// Package connected decides which peers to stay connected with, and dials them.
//
//	supernodes -------------\              /--> dial, at once or at growing intervals
//	known peers, neighbours -+-> Service --+--> find more peers (Config.Meet)
//	moves of this machine --/              \--> file of known peers
//
// Known peers are those met before, also before a restart, and those that mDNS found. Each of them can
// introduce this peer to the network, as a supernode does. A known peer that is not connected is tried
// again at growing intervals, for up to 30 days after the last meeting; one that was never met is given up
// sooner. The pure core knownPeers decides which peer to try and when. So a peer that lost its link, slept
// or was away for a day finds the others again, and the parts of a split network join.
//
// The pure core schedule spaces the attempts to reach a supernode. The pure core lookout detects that this
// machine has moved: it has a new address, a cable was plugged in, or it woke from sleep. Everything is
// then tried at once.
package connected

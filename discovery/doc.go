// Package discovery knows who is out there, what they offer and how near they
// are.
//
//	supernodes --\                     /-- connected peers --\
//	mDNS ---------+--> host, kad-dht --+-- routing table -----+--> gathering --> candidates,
//	              |                    |-- rendezvous --------|      |   ^       nearest first
//	              \-- peers met -------+-- remembered peers --/      v   |
//	                                                             ask each one:
//	                                                      signed offer + round trip
//
// A Service joins the network's own DHT (protocol prefix /p2pmpi/<network>),
// keeps trying to reach the supernodes that it was given, listens to its LAN,
// and announces itself under the network's rendezvous. All of that yields hints
// only: provider records outlive a peer by two days and routing tables lag. The
// truth about a peer is its own signed Offer, asked for at the moment of need
// over /p2pmpi/offer/1.0.0; Candidates asks many peers at once.
//
// A Need says how many slots are wanted, and by its Filter of which peers: with so much
// memory for each slot, of this platform, these alone or not those. Who is not chosen is
// not asked; what does not suit is passed over by what its offer says, with the Reason.
//
// Which answers count, how long to wait for the silent and in which order the
// candidates stand is decided by a pure core, gathering; offers are judged by
// the pure function Open. The rest moves bytes.
//
// A supernode is a peer like any other. It introduces newcomers and may then
// vanish: Introduced returns only when the newcomer has met the others itself. From then on
// everybody whom it has met does what a supernode did: the peers that were met, also before a
// restart, and those of which the LAN tells are tried again for ever while they are not
// connected, ever more seldom. Whom and when is decided by a pure core, acquaintances. So
// who lost its link, was asleep or away for a day finds the others again, and parts of a
// network that were split join. A move of this machine (a new address, a cable plugged
// in, a wake from sleep) has all of it be done at once.
//
// Two processes with one identity, of which one has a copy of the other's home, are noticed by
// any peer that both are connected to; the one that came later is told (see TwinError).
//
// Round-trip times are measured at each answer. By them everybody finds its place in a space
// of coordinates, which offers say; of a crowd those are asked first that stand near.
//
// Not promised: an offered slot may be gone when it is asked for (package
// reservation decides that), and a candidate may be unreachable a moment later.
package discovery

// Package discovery finds the peers of a network, their offers and their distances.
//
//	supernodes --\                     /-- connected peers --\
//	mDNS ---------+--> host, kad-dht --+-- routing table -----+--> gathering --> candidates,
//	              |                    |-- rendezvous --------|      |   ^       nearest first
//	              \-- known peers -----+-- remembered peers --/      v   |
//	                                                             ask each one:
//	                                                      signed offer + round trip
//
// A Service joins the network's own DHT (protocol prefix /p2pmpi/<network>), keeps trying to reach the
// configured supernodes, uses mDNS on the LAN, and announces itself under the network's rendezvous. These
// sources yield only hints: provider records outlive a peer by two days, and routing tables lag. A peer's
// own signed Offer is authoritative. It is requested when needed, over /p2pmpi/offer/1.0.0; Candidates
// asks many peers at once.
//
// A Need states how many slots are wanted. Its Filter restricts the peers: by memory per slot, by
// platform, or by lists of included and excluded peers. Peers outside these lists are not asked. Peers
// whose offers do not match are reported with the Reason.
//
// A pure core, gathering, decides which answers count, how long to wait for silent peers, and the order
// of the candidates. The pure function openOffer judges offers. The rest of the package does input and output.
//
// A supernode is an ordinary peer that introduces newcomers and may leave afterwards. Introduced returns
// once the newcomer has met other peers itself. From then on every known peer can introduce it as a
// supernode did. Package connected keeps the peer connected to supernodes and known peers, even after the machine
// lost its link, slept or moved. When that package reaches new peers, the Service looks for others.
//
// Two processes have the same identity if the home directory of one is a copy of the other's. Any peer
// that both are connected to can detect this. The process that started later is told (see DuplicateError).
//
// Each answer yields a measured round-trip time. From these times every peer computes its position in a
// space of network coordinates, which its offers state. In a large network, a search first asks the peers
// that are estimated to be near.
//
// Not promised: an offered slot may be taken by the time it is requested (package reservation decides
// that), and a candidate may become unreachable a moment later.
package discovery

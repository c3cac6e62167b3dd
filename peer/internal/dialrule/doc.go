// Package dialrule decides which addresses a peer dials that others have named.
//
// Anybody may say that a peer is at 127.0.0.1 or 192.168.1.1: the table of a job, the DHT, the
// peer itself. Who dials wherever he is told knocks at his owner's own services and those of
// his network, for a stranger. So it depends on what is known of the peer, and on whom this
// one meets:
//
//	address                        is dialled
//	public                         always
//	where the peer was met         always: it was connected there, its owner has named it
//	                               as a supernode, or the local network has told of it
//	private                        if the peer was met at another private address, or if
//	                               nobody was met at a public one
//	of this machine                if the peer was met on this machine, or if nobody was met
//	                               farther away; a private one also for a peer that was met
//	                               nowhere near, if nobody was met at a public address
//	loopback                       if nobody was met elsewhere than on this machine
//	link-local, unspecified,
//	multicast                      never
//
// So the peers of one machine find each other there, those of a laboratory in its networks, and
// neighbours at home, whose supernode is anywhere, over multicast DNS. Who is reached through a
// relay counts as the relay. Names are looked up only if the owner has given them.
//
// Used by libp2p, as its connection gater, and where peers connect beside it for their processes.
package dialrule

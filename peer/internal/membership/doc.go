// Package membership keeps everybody out of a private network who has no token
// signed by its owner.
//
//	owner's key -- signs --> Token (network, holder, name, expiry) -- Invitation, a line of text
//	                           ^
//	    holder's key -- signs voucher (another peer's ID)
//
//	A dials B:  TCP or a relay: TLS |  A: token, voucher   |
//	            QUIC: first stream  |  B: verdict; its own |  then libp2p hears of it,
//	                                |  A: verdict          |  by way of the Gate
//
// A token names its holder by peer ID. The holder shows the token; another peer shows
// with it a voucher that the holder's key has signed for it. So an invitation for
// whoever has it is one whose holder's key is in its text, and the key of a p2pboot
// vouches for a p2prun beside it and for the hosts that libp2p makes besides, such as
// the one that checks reachability. What is shown is of no use to others: a
// connection says who is at its other end, and the proof must be for that peer.
//
// A token may also name the person whom the owner invites. All peers that such tokens admit are that
// person's, and all that one without a name admits are of one person, whoever they are (Token.Person): so the
// replicas of a rank go to peers of different owners, and nobody is several who has not been
// invited several times.
//
// Proofs are exchanged before libp2p has a connection at all: over TCP and through
// relays at the end of the security handshake (Gate.TLS), over QUIC on the first
// stream, before the transport hands the connection on (Gate.QUIC). So there is no
// protocol, identify included, that a stranger could speak, and no service needs to
// know of members. A pre-shared key would do the same for TCP, but not for QUIC. The
// Gate is libp2p's connection gater: it lets only connections through whose peer has
// been admitted, so that a transport that does not exchange proofs connects nobody,
// and it neither dials nor hears for a moment whoever was refused just now.
//
// Who dials shows its token first, and is answered with another only when it is good.
// So whoever scans the internet learns that a peer is of a private network, not of
// which; who dials tells the network's name to whoever answers.
//
// Judging is pure (judge), as is remembering (register). The Service ends the
// connections of peers whose tokens expire, and shows a token that is renewed to all
// who are connected, over /p2pmpi/member/1.0.0.
//
// In an open network nothing of this happens. An open peer that meets a member of a
// private network speaks the exchange only to be told, and to tell its owner, why it
// gets no further.
//
// Not promised: that a token can be taken back before it expires, or that a member
// keeps the network to itself: it can vouch for others as well as hand over its key.
package membership

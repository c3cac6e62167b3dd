// Package membership admits a peer to a private network only if the peer has a token signed by the network's
// owner.
//
//	owner's key -- signs --> Token (network, holder, name, expiry) -- Invitation, a line of text
//	                           ^
//	    holder's key -- signs voucher (another peer's ID)
//
//	A dials B:  TCP or a relay: TLS |  A: token, voucher   |
//	            QUIC: first stream  |  B: verdict; its own |  then libp2p gets the connection,
//	                                |  A: verdict          |  if the Gate permits
//
// A token names its holder by peer ID. The holder proves its membership with the token alone. Any other peer
// also needs a voucher for its own ID, signed with the holder's key. An invitation that is not bound to a peer
// therefore contains the private key of its holder. The key of a p2pboot also signs vouchers for a p2prun of
// the same user, and for additional hosts of libp2p, such as the one that checks reachability. A copied proof
// is useless to another peer, because a proof must match the peer ID that the connection has authenticated.
//
// A token may also name the person that the owner invites. All peers that such tokens admit belong to that
// person. All peers that one token without a name admits count as peers of one person (Token.person). The
// replicas of a rank can therefore be placed on peers of different owners: one person counts as several only with
// several invitations.
//
// Peers exchange proofs before libp2p receives the connection. Over TCP and through relays, the exchange is at
// the end of the security handshake (Gate.TLS). Over QUIC, the exchange is on the first stream, before the
// transport returns the connection (Gate.QUIC). A stranger can therefore use no protocol, not even identify,
// and services need no checks of their own. libp2p's pre-shared key would have the same effect for TCP, but
// excludes QUIC.
//
// The Gate is libp2p's connection gater. It permits only connections to admitted peers, so a transport
// without an exchange of proofs cannot connect any peer. For a short time after a refusal, the Gate permits
// neither dials to the refused peer nor connections from it.
//
// The dialling peer shows its token first. The other peer answers with its own token only if the first one is
// valid. A scan of the internet therefore reveals that a peer belongs to a private network, but not the name of
// that network. A peer that dials reveals the name to any peer that answers.
//
// The function judge, which checks a proof, is pure, and so is the register of the results. The Service closes
// the connections to peers whose tokens expire. It shows a renewed token to all connected peers, over
// /p2pmpi/member/1.0.0.
//
// Peers of an open network do not exchange proofs with each other. They support the exchange only to learn, and
// to report to their owners, why a member of a private network has refused them.
//
// # Limits
//
// A token cannot be revoked before it expires. A member can admit others, either by signing vouchers or by
// sharing its key.
package membership

package membership

import (
	"cmp"
	"fmt"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/sealed"
	"github.com/p2pmpi/p2pmpi/peer/net/membership/internal/pb"
)

// judge decides whether a member of network n admits the peer from, which the connection has authenticated.
// If so, it also returns the token on which the admission is based.
func judge(p *pb.Proof, from p2ppeer.ID, n Network, now time.Time) (pb.Verdict, Token) {
	if len(p.GetToken()) == 0 {
		return pb.Verdict_NO_TOKEN, Token{}
	}
	t, err := openToken(p.GetToken())
	switch {
	case err != nil:
		return pb.Verdict_MALFORMED, Token{}
	case t.Network != n:
		return pb.Verdict_OTHER_NETWORK, Token{}
	case !now.Before(t.Expires):
		return pb.Verdict_EXPIRED, Token{}
	case from != t.Holder && !validVoucher(p.GetVoucher(), from, t.Holder):
		return pb.Verdict_OTHER_PEER, Token{}
	}
	return pb.Verdict_ADMITTED, t
}

// validVoucher reports whether envelope contains a voucher of holder for peer.
func validVoucher(envelope []byte, peer, holder p2ppeer.ID) bool {
	var v voucher
	signer, err := sealed.Open(envelope, maxSealed, &v)
	return err == nil && signer == holder && v == voucher{peer: peer, holder: holder}
}

// A Refusal is the reason why one peer refuses another.
type Refusal struct {
	Peer    p2ppeer.ID // the other peer
	Theirs  bool       // true if that peer refuses this one, false for the reverse
	verdict pb.Verdict
}

// Error implements error. Its text is for users.
func (r *Refusal) Error() string {
	if r.Theirs {
		return fmt.Sprintf("peer %s refuses this one: %s", r.Peer,
			cmp.Or(reasonsOfPeer[r.verdict], "it cannot read this peer's token; upgrade the older of the two peers"))
	}
	return fmt.Sprintf("this peer refuses %s: %s", r.Peer, cmp.Or(reasonsForPeer[r.verdict], "its token cannot be read"))
}

const invited = "ask the network's owner for an invitation, and accept it with p2pboot network join"

// The reasons why another peer refuses this one, and why this one refuses another.
var (
	reasonsOfPeer = map[pb.Verdict]string{
		pb.Verdict_OPEN:          "it belongs to an open network, and this peer to a private network",
		pb.Verdict_NO_TOKEN:      "it belongs to a private network for which this peer has no token; " + invited,
		pb.Verdict_EXPIRED:       "this peer's token has expired; " + invited,
		pb.Verdict_OTHER_NETWORK: "it belongs to another private network, or to one with the same name and another owner; " + invited,
		pb.Verdict_OTHER_PEER:    "this peer's token is bound to another peer; " + invited,
	}
	reasonsForPeer = map[pb.Verdict]string{
		pb.Verdict_NO_TOKEN:      "it has no token of this private network",
		pb.Verdict_OPEN:          "it has no token of this private network",
		pb.Verdict_EXPIRED:       "its token has expired",
		pb.Verdict_OTHER_NETWORK: "its token is for another network, or for one with the same name and another owner",
		pb.Verdict_OTHER_PEER:    "its token is bound to another peer",
	}
)

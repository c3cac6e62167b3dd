package membership

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/sealed"
	"github.com/p2pmpi/p2pmpi/peer/net/membership/internal/pb"
)

// maxSealed bounds an envelope, in bytes. An envelope contains an Ed25519 key and signature, two names, an ID
// and two times.
const maxSealed = 512

// version is the version of tokens. Tokens of other versions are refused.
const version = 1

// A Token states that its holder is a member of a network, and so are the peers for which the holder has signed
// vouchers.
type Token struct {
	Network Network    // the network's owner has signed the token
	Holder  p2ppeer.ID // the peer that the token belongs to
	Name    string     // the network owner's name for the invited person; may be empty
	Issued  time.Time  // truncated to milliseconds
	Expires time.Time
}

// Kind implements sealed.Record.
func (t *Token) Kind() string { return "network-token" }

// MarshalRecord encodes t without the owner, which is the signer of the envelope.
func (t *Token) MarshalRecord() ([]byte, error) {
	return proto.Marshal(&pb.Token{
		Version: version,
		Network: t.Network.Name,
		Holder:  []byte(t.Holder),
		Issued:  t.Issued.UnixMilli(),
		Expires: t.Expires.UnixMilli(),
		Name:    t.Name,
	})
}

// person returns the person that owns the peers admitted by t. All tokens with the same name belong to the same
// person. Each token without a name stands for another person, called by the ID of the token's holder. To count
// as several persons, a user needs several tokens.
func (t *Token) person() string { return cmp.Or(t.Name, t.Holder.String()) }

// UnmarshalRecord decodes data into t. It does not set the owner.
func (t *Token) UnmarshalRecord(data []byte) error {
	var m pb.Token
	if err := proto.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("decode token: %w", err)
	}
	if m.GetVersion() != version {
		return fmt.Errorf("decode token: version %d, this peer knows %d", m.GetVersion(), version)
	}
	holder, err := p2ppeer.IDFromBytes(m.GetHolder())
	if err != nil {
		return fmt.Errorf("decode token: holder: %w", err)
	}
	if err := errors.Join(CheckName(m.GetNetwork()), CheckPerson(m.GetName())); err != nil {
		return fmt.Errorf("decode token: %w", err)
	}
	*t = Token{
		Network: Network{Name: m.GetNetwork()},
		Holder:  holder,
		Name:    m.GetName(),
		Issued:  time.UnixMilli(m.GetIssued()),
		Expires: time.UnixMilli(m.GetExpires()),
	}
	return nil
}

// openToken decodes a sealed token. The signer becomes the owner of the token's network.
func openToken(envelope []byte) (Token, error) {
	var t Token
	signer, err := sealed.Open(envelope, maxSealed, &t)
	if err != nil {
		return Token{}, fmt.Errorf("token: %w", err)
	}
	t.Network.Owner = signer
	return t, nil
}

// A voucher states that a peer acts for the holder of a token. The peer is a submit-only p2prun, the dialler of
// a reachability check, or a peer with the key of an invitation that is not bound. Whoever can sign a voucher
// has the holder's private key and could act as the holder anyway, so a voucher grants no further rights.
type voucher struct {
	peer   p2ppeer.ID
	holder p2ppeer.ID
}

func (v *voucher) Kind() string { return "network-voucher" }

func (v *voucher) MarshalRecord() ([]byte, error) {
	return proto.Marshal(&pb.Voucher{Peer: []byte(v.peer), Holder: []byte(v.holder)})
}

func (v *voucher) UnmarshalRecord(data []byte) error {
	var m pb.Voucher
	if err := proto.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("decode voucher: %w", err)
	}
	*v = voucher{peer: p2ppeer.ID(m.GetPeer()), holder: p2ppeer.ID(m.GetHolder())}
	return nil
}

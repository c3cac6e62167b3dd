package membership

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/sealed"
	"github.com/p2pmpi/p2pmpi/peer/net/membership/internal/pb"
)

// An Invitation is a token in the form that its holder keeps.
type Invitation struct {
	Token
	sealed []byte
	key    crypto.PrivKey // the holder's; nil if the holder is a peer with its own key
}

// prefix begins the text of an invitation, and includes the version of the format.
const prefix = "p2pmpi1."

// maxText bounds the text of an invitation, in bytes.
const maxText = 2 << 10

// Invite returns an invitation to the owner's network with the given name. The invitation is for the peer
// holder, and names person unless that is empty. If holder is empty, any peer that has the invitation can use
// it, so the invitation is a secret.
func Invite(owner crypto.PrivKey, name, person string, holder p2ppeer.ID, issued, expires time.Time) (*Invitation, error) {
	if err := errors.Join(CheckName(name), CheckPerson(person)); err != nil {
		return nil, err
	}
	i := &Invitation{}
	if holder == "" {
		var err error
		if i.key, _, err = crypto.GenerateEd25519Key(rand.Reader); err == nil {
			holder, err = p2ppeer.IDFromPrivateKey(i.key)
		}
		if err != nil {
			return nil, fmt.Errorf("make a key for the invitation: %w", err)
		}
	}
	i.Token = Token{Network: Network{Name: name}, Holder: holder, Name: person, Issued: issued.Truncate(time.Millisecond), Expires: expires.Truncate(time.Millisecond)}
	var err error
	if i.Network.Owner, err = p2ppeer.IDFromPrivateKey(owner); err != nil {
		return nil, fmt.Errorf("owner's key: %w", err)
	}
	if i.sealed, err = sealed.Seal(&i.Token, owner); err != nil {
		return nil, fmt.Errorf("sign the invitation: %w", err)
	}
	return i, nil
}

// Bound reports whether the invitation is for one peer, and therefore contains no secret.
func (i *Invitation) Bound() bool { return i.key == nil }

// Text returns the invitation as one line.
func (i *Invitation) Text() (string, error) {
	m := &pb.Invitation{Token: i.sealed}
	var err1, err2 error
	if i.key != nil {
		m.Key, err1 = crypto.MarshalPrivateKey(i.key)
	}
	data, err2 := proto.Marshal(m)
	if err := errors.Join(err1, err2); err != nil {
		return "", fmt.Errorf("encode invitation: %w", err)
	}
	return prefix + base64.RawURLEncoding.EncodeToString(data), nil
}

// errNoInvitation means that a text is not an invitation. The error omits the text, which may be a secret.
var errNoInvitation = fmt.Errorf("not an invitation: want one line that begins with %q", prefix)

// ParseInvitation decodes an invitation, which white space may surround. It does not check whether the token has
// expired.
func ParseInvitation(text string) (*Invitation, error) {
	text, ok := strings.CutPrefix(strings.TrimSpace(text), prefix)
	if !ok || len(text) > maxText {
		return nil, errNoInvitation
	}
	var m pb.Invitation
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err == nil {
		err = proto.Unmarshal(data, &m)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; this one was cut or changed", errNoInvitation)
	}
	i := &Invitation{sealed: m.GetToken()}
	if i.Token, err = openToken(i.sealed); err != nil {
		return nil, fmt.Errorf("invitation: %w", err)
	}
	if len(m.GetKey()) == 0 {
		return i, nil
	}
	if i.key, err = crypto.UnmarshalPrivateKey(m.GetKey()); err != nil {
		return nil, errors.New("invitation: invalid key")
	}
	if !i.Holder.MatchesPrivateKey(i.key) {
		return nil, errors.New("invitation: the key does not match the token")
	}
	return i, nil
}

// A BoundError means that an invitation is bound to another peer.
type BoundError struct {
	To, Peer p2ppeer.ID
}

// Error names both peers.
func (e *BoundError) Error() string {
	return fmt.Sprintf("the token is bound to peer %s, and this is %s", e.To, e.Peer)
}

// proof returns the proof that the peer id shows to others. home is the private key that may sign a voucher for
// id, or nil. The error is a *BoundError if no key can sign the required voucher.
func (i *Invitation) proof(id p2ppeer.ID, home crypto.PrivKey) (*pb.Proof, error) {
	p := &pb.Proof{Token: i.sealed}
	if id == i.Holder {
		return p, nil
	}
	key := i.key
	if key == nil && home != nil && i.Holder.MatchesPrivateKey(home) {
		key = home
	}
	if key == nil {
		return nil, &BoundError{i.Holder, id}
	}
	var err error
	if p.Voucher, err = sealed.Seal(&voucher{peer: id, holder: i.Holder}, key); err != nil {
		return nil, fmt.Errorf("confirm the membership of %s: %w", id, err)
	}
	return p, nil
}

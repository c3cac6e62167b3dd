package sealed

import (
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/record"
)

// A Record is what an envelope can contain. Its kind is signed too, so a signature is not valid for another kind.
type Record interface {
	Kind() string
	MarshalRecord() ([]byte, error)
	UnmarshalRecord([]byte) error
}

// payload makes a Record a libp2p record.
type payload struct{ Record }

func (p payload) Domain() string { return "p2pmpi-" + p.Kind() }
func (p payload) Codec() []byte  { return []byte("/p2pmpi/" + p.Kind()) }

// Seal returns an envelope with r, signed with key.
func Seal(r Record, key crypto.PrivKey) ([]byte, error) {
	if key == nil {
		return nil, errors.New("sign: no private key")
	}
	envelope, err := record.Seal(payload{r}, key)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return envelope.Marshal()
}

// Open decodes an envelope of at most limit bytes into r, and returns its signer.
func Open(envelope []byte, limit int, r Record) (signer p2ppeer.ID, err error) {
	if len(envelope) > limit {
		return "", fmt.Errorf("envelope of %d bytes, at most %d are allowed", len(envelope), limit)
	}
	e, err := record.ConsumeTypedEnvelope(envelope, payload{r})
	if err != nil {
		return "", err
	}
	if string(e.PayloadType) != string(payload{r}.Codec()) {
		return "", errors.New("the envelope contains another kind of record")
	}
	return p2ppeer.IDFromPublicKey(e.PublicKey)
}

package sealed

import (
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/record"
)

// Seal returns an envelope with the record r, signed with key.
func Seal(r record.Record, key crypto.PrivKey) ([]byte, error) {
	if key == nil {
		return nil, errors.New("sign: no private key")
	}
	envelope, err := record.Seal(r, key)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return envelope.Marshal()
}

// Open decodes an envelope of at most limit bytes into r, and returns its signer.
func Open(envelope []byte, limit int, r record.Record) (signer p2ppeer.ID, err error) {
	if len(envelope) > limit {
		return "", fmt.Errorf("envelope of %d bytes, at most %d allowed", len(envelope), limit)
	}
	e, err := record.ConsumeTypedEnvelope(envelope, r)
	if err != nil {
		return "", err
	}
	if string(e.PayloadType) != string(r.Codec()) {
		return "", errors.New("the envelope contains another kind of record")
	}
	return p2ppeer.IDFromPublicKey(e.PublicKey)
}

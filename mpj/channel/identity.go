package channel

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// KeySize is the length in bytes of a process's public key.
const KeySize = ed25519.PublicKeySize

// An Identity is the key pair of a process, which lives as long as it does. Other
// processes know the public key from the job's membership table, over the
// authenticated streams between peers: no authority and no names are needed.
type Identity struct{ certificate tls.Certificate }

// NewIdentity makes a key pair.
func NewIdentity() (*Identity, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make process key: %w", err)
	}
	// TLS wants a certificate around the key. Nobody reads what else is in it.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC), // RFC 5280: none
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, fmt.Errorf("make process key: %w", err)
	}
	return &Identity{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}}, nil
}

// Key returns the public key, KeySize bytes.
func (i *Identity) Key() []byte {
	return i.certificate.PrivateKey.(ed25519.PrivateKey).Public().(ed25519.PublicKey)
}

// config is TLS 1.3 with exactly the process whose key is other.
func (i *Identity) config(other []byte) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{i.certificate},
		ClientAuth:   tls.RequireAnyClientCert,
		// Names and authorities say nothing here; VerifyConnection does, always.
		InsecureSkipVerify:          true,
		VerifyConnection:            func(s tls.ConnectionState) error { return checkKey(s, other) },
		SessionTicketsDisabled:      true, // every channel proves its keys
		DynamicRecordSizingDisabled: true, // the first bytes are no page to show early
	}
}

// checkKey says whether the other side of a connection, which has proved that it
// has the key in its certificate, is the right one.
func checkKey(s tls.ConnectionState, want []byte) error {
	if len(s.PeerCertificates) != 1 {
		return errors.New("the other side shows no key")
	}
	got, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok || len(want) != KeySize || !bytes.Equal(got, want) {
		return errors.New("the other side has not the key of the process that it should be")
	}
	return nil
}

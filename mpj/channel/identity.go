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

// An Identity is the key pair of a process, which it keeps until it ends. Other processes learn the
// public key from the job's membership table, over the authenticated streams between peers. No
// certificate authority and no names are needed.
type Identity struct{ certificate tls.Certificate }

// NewIdentity makes a key pair.
func NewIdentity() (*Identity, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make process key: %w", err)
	}
	// TLS requires a certificate for the key. Other fields of the certificate are not used.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC), // RFC 5280: no well-defined expiration date
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

// config returns a TLS 1.3 configuration that accepts only the process with public key other.
func (i *Identity) config(other []byte) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{i.certificate},
		ClientAuth:   tls.RequireAnyClientCert,
		// Names and authorities are not checked; VerifyConnection always checks the key instead.
		InsecureSkipVerify:          true,
		VerifyConnection:            func(s tls.ConnectionState) error { return checkKey(s, other) },
		SessionTicketsDisabled:      true, // every channel proves its keys
		DynamicRecordSizingDisabled: true, // full records from the start, because small first records help only browsers
	}
}

// checkKey returns an error unless the other side of a connection has the key want. TLS has already
// proved that the other side owns the key in its certificate.
func checkKey(s tls.ConnectionState, want []byte) error {
	if len(s.PeerCertificates) != 1 {
		return errors.New("the other side presented no key")
	}
	got, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok || len(want) != KeySize || !bytes.Equal(got, want) {
		return errors.New("the other side's key does not match the expected process")
	}
	return nil
}

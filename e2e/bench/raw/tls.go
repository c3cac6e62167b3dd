package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"time"
)

// listenTLS and dialTLS use TLS 1.3 with full records from the start. The certificate is temporary
// and not verified, since the measurement begins after the handshake.
func listenTLS(ctx context.Context) (string, acceptor, error) {
	certificate, err := selfSigned()
	if err != nil {
		return "", nil, err
	}
	address, accept, err := listenTCP(ctx)
	if err != nil {
		return "", nil, err
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate},
		DynamicRecordSizingDisabled: true, SessionTicketsDisabled: true,
	}
	return address, func() (connection, error) {
		conn, err := accept()
		if err != nil {
			return nil, err
		}
		secured := tls.Server(conn.(net.Conn), config)
		return secured, secured.HandshakeContext(ctx)
	}, nil
}

func dialTLS(ctx context.Context, address string) (connection, error) {
	conn, err := dialTCP(ctx, address)
	if err != nil {
		return nil, err
	}
	secured := tls.Client(conn.(net.Conn), &tls.Config{
		MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, DynamicRecordSizingDisabled: true,
	})
	return secured, secured.HandshakeContext(ctx)
}

func selfSigned() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}

package main

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
)

// A connection carries bytes in both directions.
type connection = io.ReadWriteCloser

// An acceptor waits for the single expected connection.
type acceptor func() (connection, error)

// A path is a kind of connection between two processes on this machine.
type path struct {
	listen func(context.Context) (address string, accept acceptor, err error)
	dial   func(ctx context.Context, address string) (connection, error)
}

var paths = map[string]path{
	"unix":         {listenUnix, dialUnix},
	"tcp":          {listenTCP, dialTCP},
	"tls":          {listenTLS, dialTLS},
	"libp2p":       {listenLibp2p(withTLS), dialLibp2p(withTLS)},
	"libp2p-noise": {listenLibp2p(withNoise), dialLibp2p(withNoise)},
	"libp2p-relay": {listenRelayed, dialRelayed},
}

func listenUnix(ctx context.Context) (string, acceptor, error) {
	dir, err := os.MkdirTemp("", "p2pmpi-raw-")
	if err != nil {
		return "", nil, err
	}
	address := filepath.Join(dir, "socket")
	l, err := new(net.ListenConfig).Listen(ctx, "unix", address)
	if err != nil {
		return "", nil, err
	}
	return address, func() (connection, error) {
		defer os.RemoveAll(dir)
		return acceptOne(l)
	}, nil
}

func dialUnix(ctx context.Context, address string) (connection, error) {
	return new(net.Dialer).DialContext(ctx, "unix", address)
}

func listenTCP(ctx context.Context) (string, acceptor, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	return l.Addr().String(), func() (connection, error) { return acceptOne(l) }, nil
}

func dialTCP(ctx context.Context, address string) (connection, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// acceptOne returns the first connection and closes the listener.
func acceptOne(l net.Listener) (net.Conn, error) {
	defer l.Close()
	return l.Accept()
}

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/libp2p/go-libp2p"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/client"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/grid"
)

// A relayed stream passes through a third process, which forwards encrypted bytes:
//
//	first ◄── TCP ──► relay ◄── TCP ──► second

// serveRelay is the main function of the third process. It prints its address and serves until the first process
// kills it.
func serveRelay(ctx context.Context) error {
	h, err := newHost(withTLS, libp2p.DisableRelay(), libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"))
	if err != nil {
		return err
	}
	defer h.Close()
	// Like our peers: without announced limits, and with their buffer size.
	resources := relay.DefaultResources()
	resources.Limit, resources.BufferSize = nil, 64<<10
	service, err := relay.New(h, relay.WithResources(resources))
	if err != nil {
		return err
	}
	defer service.Close()
	fmt.Println(addressOf(h))
	<-ctx.Done()
	return nil
}

// listenRelayed starts the relay, and listens only through it.
func listenRelayed(ctx context.Context) (string, acceptor, error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-relay")
	cmd.Stderr = os.Stderr
	grid.EndWithParent(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", nil, fmt.Errorf("start the relay: %w", err)
	}
	h, err := newHost(withTLS, libp2p.EnableRelay(), libp2p.NoListenAddrs)
	if err != nil {
		return "", nil, err
	}
	address := strings.TrimSpace(line)
	through, err := p2ppeer.AddrInfoFromString(address)
	if err != nil {
		return "", nil, err
	}
	if err := h.Connect(ctx, *through); err != nil {
		return "", nil, err
	}
	accept := acceptStream(h)
	if _, err := client.Reserve(ctx, h, *through); err != nil {
		return "", nil, fmt.Errorf("reserve at the relay: %w", err)
	}
	return fmt.Sprintf("%s/p2p-circuit/p2p/%s", address, h.ID()), accept, nil
}

func dialRelayed(ctx context.Context, address string) (connection, error) {
	h, err := newHost(withTLS, libp2p.EnableRelay(), libp2p.NoListenAddrs)
	if err != nil {
		return nil, err
	}
	return openStream(ctx, h, address)
}

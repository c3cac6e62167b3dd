package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/faultdetect"
)

// modes are measured side by side: each process is a member of one group per mode.
var modes = []faultdetect.Mode{faultdetect.Gossip, faultdetect.Fast}

// member is the main function of a process in a real group. It runs a peer's failure detector and
// nothing else of a peer. It prints its address once the network is up, and reads the addresses of
// the other members. Then it prints its verdicts with their times, until its input ends.
//
//	out  an empty line
//	in   an empty line
//	out  ID ADDRESS
//	in   MEMBERS SELF HANG, and MEMBERS lines ID ADDRESS
//	out  an empty line, once it is connected to the members that it sends tables to: in a
//	     large group, connecting occupies this machine's processors for longer than a period
//	in   an empty line
//	out  MODE MEMBER NANOSECONDS, for each verdict
func member(address string, in io.Reader, out io.Writer) error {
	fmt.Fprintln(out)
	lines := bufio.NewReader(in)
	if _, err := lines.ReadString('\n'); err != nil {
		return fmt.Errorf("wait for the network: %w", err)
	}
	h, err := libp2p.New(libp2p.ListenAddrStrings(address), libp2p.DisableRelay(), libp2p.DisableMetrics())
	if err != nil {
		return err
	}
	defer h.Close()
	fmt.Fprintln(out, h.ID(), address)

	var n, self int
	var hang time.Duration
	if _, err := fmt.Fscanln(lines, &n, &self, (*int64)(&hang)); err != nil {
		return fmt.Errorf("read the size of the group: %w", err)
	}
	ids, err := meet(h.Peerstore(), lines, n)
	if err != nil {
		return err
	}
	if err := connect(h, ids, self); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if _, err := lines.ReadString('\n'); err != nil {
		return fmt.Errorf("wait for the other members: %w", err)
	}
	s := faultdetect.NewService(h, zerolog.Nop())
	defer s.Close()
	for _, mode := range modes {
		g, err := s.Join(faultdetect.GroupConfig{
			Job: mode.String(), Members: ids, Self: self, Period: period, Hang: hang, Mode: mode,
			Verdict: func(v faultdetect.Verdict) {
				if v.State == faultdetect.Failed {
					fmt.Fprintln(out, mode, v.Member, time.Now().UnixNano())
				}
			},
		})
		if err != nil {
			return err
		}
		defer g.Close()
	}
	_, err = io.Copy(io.Discard, lines)
	return err
}

// connect connects to the members that this one sends tables to.
func connect(h host.Host, ids []p2ppeer.ID, self int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for round := range faultdetect.DBRR.Rounds(len(ids)) {
		other := ids[faultdetect.Target(len(ids), self, uint64(round))]
		if err := h.Connect(network.WithDialPeerTimeout(ctx, time.Minute), p2ppeer.AddrInfo{ID: other}); err != nil {
			return fmt.Errorf("connect: %w", err)
		}
	}
	return nil
}

// meet reads the identities and addresses of the n members of the group.
func meet(known peerstore.Peerstore, in io.Reader, n int) (ids []p2ppeer.ID, err error) {
	for range n {
		var name, address string
		if _, err := fmt.Fscanln(in, &name, &address); err != nil {
			return nil, fmt.Errorf("read member %d: %w", len(ids), err)
		}
		id, err := p2ppeer.Decode(name)
		if err != nil {
			return nil, err
		}
		at, err := ma.NewMultiaddr(address)
		if err != nil {
			return nil, err
		}
		known.AddAddr(id, at, peerstore.PermanentAddrTTL)
		ids = append(ids, id)
	}
	return ids, nil
}

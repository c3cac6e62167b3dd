package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ipfs/boxo/bitswap"
	"github.com/ipfs/boxo/bitswap/network/bsnet"
	"github.com/ipfs/boxo/blockstore"
	blocks "github.com/ipfs/go-block-format"
	"github.com/ipfs/go-cid"
	"github.com/ipfs/go-datastore"
	dssync "github.com/ipfs/go-datastore/sync"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/p2pmpi/p2pmpi/filetransfer"
)

// A contender prepares a transfer of content from the first host to all others, all of which are
// connected. fetch runs the transfer, and end releases everything.
type contender struct {
	name    string
	prepare func(ctx context.Context, dir string, hosts []*limited, content []byte) (fetch func() error, end func(), err error)
}

var contenders = []contender{
	{"filetransfer", own},
	{"bitswap, blocks of 1 MiB", library(1 << 20)},
	{"bitswap, blocks of 256 KiB", library(256 << 10)},
}

const job = "job"

func own(ctx context.Context, dir string, hosts []*limited, content []byte) (func() error, func(), error) {
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return nil, nil, err
	}
	var services []*filetransfer.Service
	end := func() {
		for _, s := range services {
			_ = s.Close() // always nil
		}
	}
	var ids []p2ppeer.ID
	for i, h := range hosts {
		store, err := filetransfer.OpenStore(filepath.Join(dir, fmt.Sprint(i)), 1<<40)
		if err != nil {
			end()
			return nil, nil, err
		}
		services = append(services, filetransfer.NewService(h, store, zerolog.Nop()))
		if i > 0 {
			ids = append(ids, h.ID())
		}
	}
	m, err := filetransfer.Build(ctx, []filetransfer.Source{{Path: "file", From: path}})
	if err != nil {
		end()
		return nil, nil, err
	}
	services[0].Serve(job, ids, map[filetransfer.Digest]filetransfer.Source{m[0].Digest: {From: path}})
	for i := range ids {
		var fellows []p2ppeer.ID
		for _, j := range filetransfer.Neighbours(i, len(ids)) {
			fellows = append(fellows, ids[j])
		}
		services[i+1].Share(job, hosts[0].ID(), fellows, nil)
	}
	return func() error {
		g, ctx := errgroup.WithContext(ctx)
		for _, s := range services[1:] {
			g.Go(func() error { return s.Fetch(ctx, hosts[0].ID(), job, m.Wants(), nil) })
		}
		return g.Wait()
	}, end, nil
}

// library returns a contender that uses bitswap with its defaults, with blocks in memory.
func library(size int) func(context.Context, string, []*limited, []byte) (func() error, func(), error) {
	return func(ctx context.Context, _ string, hosts []*limited, content []byte) (func() error, func(), error) {
		ctx, cancel := context.WithCancel(ctx)
		var swaps []*bitswap.Bitswap
		end := func() {
			for _, s := range swaps {
				_ = s.Close() // the process ends soon
			}
			cancel()
		}
		var ids []cid.Cid
		for i, h := range hosts {
			net := bsnet.NewFromIpfsHost(h)
			store := blockstore.NewBlockstore(dssync.MutexWrap(datastore.NewMapDatastore()))
			for b := range chunks(content, size) {
				block := blocks.NewBlock(b)
				if i > 0 {
					break
				}
				if err := store.Put(ctx, block); err != nil {
					end()
					return nil, nil, err
				}
				ids = append(ids, block.Cid())
			}
			swaps = append(swaps, bitswap.New(ctx, net, nil, store))
		}
		for i, s := range swaps {
			for j, h := range hosts {
				if i != j { // the hosts were connected before bitswap listened
					s.PeerConnected(h.ID())
				}
			}
		}
		return func() error {
			g, ctx := errgroup.WithContext(ctx)
			for _, s := range swaps[1:] {
				g.Go(func() error {
					got, err := s.NewSession(ctx).GetBlocks(ctx, ids)
					if err != nil {
						return err
					}
					n := 0
					for range got {
						n++
					}
					if n < len(ids) {
						return fmt.Errorf("%d of %d blocks arrived: %w", n, len(ids), ctx.Err())
					}
					return nil
				})
			}
			return g.Wait()
		}, end, nil
	}
}

func chunks(b []byte, size int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for ; len(b) > 0; b = b[min(size, len(b)):] {
			if !yield(b[:min(size, len(b))]) {
				return
			}
		}
	}
}

func randomContent(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.Read(b) // never fails
	return b
}

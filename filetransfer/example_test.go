package filetransfer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/filetransfer"
)

// Staging: a submitter offers a job's files, and a peer brings them into a
// scratch folder. The job names all of them by the digest of their manifest.
func Example() {
	if err := stage(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: hello
}

func stage(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	submitter, at, err := boot(filepath.Join(dir, "submitter"))
	if err != nil {
		return err
	}
	defer at.Close()
	defer submitter.Close()
	peer, slot, err := boot(filepath.Join(dir, "peer"))
	if err != nil {
		return err
	}
	defer slot.Close()
	defer peer.Close()

	// The submitter.
	const job = "job 1"
	local := filepath.Join(dir, "input.txt")
	if err := os.WriteFile(local, []byte("hello"), 0o600); err != nil {
		return err
	}
	sources := []filetransfer.Source{{Path: "data/in.txt", From: local}}
	m, err := filetransfer.Build(ctx, sources)
	if err != nil {
		return err
	}
	encoded, err := m.Marshal()
	if err != nil {
		return err
	}
	name, err := submitter.Store().Put(ctx, job, encoded)
	if err != nil {
		return err
	}
	defer submitter.Store().Unpin(job)
	files := filetransfer.Locate(m, sources)
	files[name] = filetransfer.Source{From: submitter.Store().Path(name)}
	defer submitter.Serve(job, []p2ppeer.ID{slot.ID()}, files)()

	// The peer.
	if err := slot.Connect(ctx, p2ppeer.AddrInfo{ID: at.ID(), Addrs: at.Addrs()}); err != nil {
		return err
	}
	got, err := peer.FetchManifest(ctx, at.ID(), job, filetransfer.Want{Digest: name, Size: int64(len(encoded))})
	if err != nil {
		return err
	}
	defer peer.Store().Unpin(job)
	if err := peer.Fetch(ctx, at.ID(), job, got.Wants(), nil); err != nil {
		return err
	}
	scratch := filepath.Join(dir, "scratch")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return err
	}
	if err := peer.Store().Materialize(ctx, got, scratch); err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(scratch, "data", "in.txt"))
	fmt.Println(string(b))
	return err
}

// boot starts a service on loopback with a cache of 1 MiB.
func boot(dir string) (*filetransfer.Service, host.Host, error) {
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay())
	if err != nil {
		return nil, nil, err
	}
	store, err := filetransfer.OpenStore(dir, 1<<20)
	if err != nil {
		return nil, nil, err
	}
	return filetransfer.NewService(h, store, zerolog.Nop()), h, nil
}

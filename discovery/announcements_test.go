package discovery

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/ipfs/go-datastore"
	"github.com/ipfs/go-datastore/query"
	pb "github.com/libp2p/go-libp2p-kad-dht/pb"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/logtest"
	"github.com/p2pmpi/p2pmpi/internal/misconduct"
)

// TestExcessiveAnnouncementsAreDropped: a peer that announces very many keys is logged, and none of its
// records is kept. Ordinary announcements are still found.
func TestExcessiveAnnouncementsAreDropped(t *testing.T) {
	var log logtest.Log
	cfg := testConfig()
	cfg.Offer, cfg.Log = offering(1, 1), zerolog.New(&log)
	victim := newService(t, newHost(t), cfg)
	flooder := newHost(t)
	knows(flooder, victim.host)
	const flood = 20_000
	stream, err := flooder.NewStream(testContext(t), victim.host.ID(), kadProtocol(cfg.Network))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Reset()
	w := pbio.NewDelimitedWriter(stream)
	for i := range flood {
		m := pb.NewMessage(pb.Message_ADD_PROVIDER, fmt.Appendf(nil, "thing number %d", i), 0)
		m.ProviderPeers = pb.RawPeerInfosToPBPeers([]p2ppeer.AddrInfo{addrInfo(flooder)})
		if err := w.WriteMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	// The answer to a request on the same stream comes after all of them.
	ask := pb.NewMessage(pb.Message_GET_PROVIDERS, fmt.Appendf(nil, "thing number %d", flood-1), 0)
	if err := w.WriteMsg(ask); err != nil {
		t.Fatal(err)
	}
	answer := new(pb.Message)
	if err := pbio.NewDelimitedReader(stream, network.MessageSizeMax).ReadMsg(answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.GetProviderPeers()) > 0 {
		t.Errorf("an invalid announcement was kept")
	}
	if n := strings.Count(log.String(), "\n"); n > 3 || !strings.Contains(log.String(), flooder.ID().String()) {
		t.Errorf("got %d lines, want a few that name %s:\n%s", n, flooder.ID(), log.String())
	}
}

func TestAnnouncementsOfOffersAreBounded(t *testing.T) {
	a := newAnnouncements(namespace("lab"), testConduct())
	ctx := context.Background()
	store := func(prefix string, i int) bool {
		t.Helper()
		key := providerKey(prefix, fmt.Sprint("peer ", i))
		if err := a.Put(ctx, key, []byte("now")); err != nil {
			t.Fatal(err)
		}
		has, err := a.Has(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		return has
	}
	for i := range maxAnnouncements {
		if !store(a.prefix, i) {
			t.Fatalf("announcement %d was not kept", i)
		}
	}
	if !store(a.prefix, 0) {
		t.Error("a renewed announcement was not kept")
	}
	kept := func() (n int) {
		for i := range maxAnnouncements + 1 {
			if has, err := a.Has(ctx, providerKey(a.prefix, fmt.Sprint("peer ", i))); err == nil && has {
				n++
			}
		}
		return n
	}
	if !store(a.prefix, maxAnnouncements) || kept() != maxAnnouncements {
		t.Errorf("%d announcements are kept, want the newest one in place of another", kept())
	}
	if err := a.Delete(ctx, providerKey(a.prefix, fmt.Sprint("peer ", maxAnnouncements))); err != nil {
		t.Fatal(err)
	}
	if before := kept(); !store(a.prefix, maxAnnouncements) || kept() != before+1 {
		t.Error("an announcement was dropped although there is room")
	}
	if other := newAnnouncements(namespace("office"), testConduct()); store(other.prefix, 1) {
		t.Error("an announcement of another network was kept")
	}
}

// TestAMillionAnnouncedOffersAreBounded announces a million offers, each by another peer.
func TestAMillionAnnouncedOffersAreBounded(t *testing.T) {
	a := newAnnouncements(namespace("lab"), testConduct())
	ctx := context.Background()
	for i := range 1_000_000 {
		if err := a.Put(ctx, providerKey(a.prefix, strconv.Itoa(i)), []byte("now")); err != nil {
			t.Fatal(err)
		}
	}
	found, err := a.Query(ctx, query.Query{KeysOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if all, err := found.Rest(); err != nil || len(all) != maxAnnouncements || len(a.kept) != maxAnnouncements {
		t.Errorf("the announcements contain %d records, of which %d are kept (%v), want %d", len(all), len(a.kept), err, maxAnnouncements)
	}
}

func testConduct() *misconduct.Log { return misconduct.New(zerolog.Nop()) }

func providerKey(prefix, peer string) datastore.Key {
	return datastore.RawKey(prefix + keyEncoding.EncodeToString([]byte(peer)))
}

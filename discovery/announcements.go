package discovery

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/simplelru"
	"github.com/ipfs/go-datastore"
	dssync "github.com/ipfs/go-datastore/sync"
	"github.com/libp2p/go-libp2p-kad-dht/records"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/misconduct"
)

// maxAnnouncements bounds the provider records that this peer stores for the DHT.
const maxAnnouncements = 4096

// announcements stores the DHT's provider records. The DHT itself would keep records of any key for two
// days, so one peer could fill this one with a million of them. This store accepts only records of the
// network's one rendezvous key, one per peer, at most maxAnnouncements.
type announcements struct {
	datastore.Batching
	prefix  string // key prefix of the rendezvous records
	conduct *misconduct.Log

	mu   sync.Mutex
	kept map[datastore.Key]struct{}
}

// keyEncoding is the encoding of digests and peer IDs in the DHT's datastore keys.
var keyEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

func newAnnouncements(namespace string, conduct *misconduct.Log) *announcements {
	sum := sha256.Sum256([]byte(namespace))
	key := append([]byte{0x12, sha256.Size}, sum[:]...) // the same multihash as package routing makes
	return &announcements{
		Batching: dssync.MutexWrap(datastore.NewMapDatastore()),
		prefix:   records.ProvidersKeyPrefix + keyEncoding.EncodeToString(key) + "/",
		conduct:  conduct,
		kept:     make(map[datastore.Key]struct{}),
	}
}

var errNoRendezvous = errors.New("not this network's rendezvous")

// Put implements datastore.Datastore. It drops a record of another key without an error, and logs a
// protocol violation of the announcing peer.
func (a *announcements) Put(ctx context.Context, key datastore.Key, value []byte) error {
	if !strings.HasPrefix(key.String(), a.prefix) {
		a.conduct.Note(decodePeer(key.BaseNamespace()), "announces a record that is not an offer", errNoRendezvous)
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, again := a.kept[key]; !again && len(a.kept) >= maxAnnouncements {
		if err := a.forgetOne(ctx); err != nil {
			return err
		}
	}
	a.kept[key] = struct{}{}
	return a.Batching.Put(ctx, key, value)
}

// forgetOne removes an arbitrary record to make room; live peers renew theirs.
func (a *announcements) forgetOne(ctx context.Context) error {
	for key := range a.kept {
		delete(a.kept, key)
		return a.Batching.Delete(ctx, key)
	}
	return nil
}

func (a *announcements) Delete(ctx context.Context, key datastore.Key) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.kept, key)
	return a.Batching.Delete(ctx, key)
}

// Batch implements datastore.Batching. Its writes go through Put, so the bound holds for them as well.
func (a *announcements) Batch(context.Context) (datastore.Batch, error) {
	return datastore.NewBasicBatch(a), nil
}

// decodePeer decodes a peer ID from a datastore key. It returns "" for invalid text.
func decodePeer(text string) p2ppeer.ID {
	id, err := keyEncoding.DecodeString(text)
	if err != nil {
		return ""
	}
	return p2ppeer.ID(id)
}

// noCache disables the DHT's cache of provider records, which would keep records that Put drops.
type noCache struct {
	simplelru.LRUCache // the option's type demands version 1; nil, as the DHT calls only the methods below
}

func (noCache) Get(any) (any, bool) { return nil, false }
func (noCache) Add(any, any) bool   { return false }

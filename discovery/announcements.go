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

// maxAnnouncements bounds the peers that this one remembers for the DHT as offering.
const maxAnnouncements = 4096

// announcements is where the DHT keeps provider records. It would keep those of any key
// for two days, so that one peer could fill this one with a million of them; here are
// those of the network's one rendezvous only, one for each peer, and not too many.
type announcements struct {
	datastore.Batching
	prefix  string // of the rendezvous' records
	conduct *misconduct.Log

	mu   sync.Mutex
	kept map[datastore.Key]struct{}
}

// keyEncoding is how the DHT writes digests and IDs into keys.
var keyEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

func newAnnouncements(namespace string, conduct *misconduct.Log) *announcements {
	sum := sha256.Sum256([]byte(namespace))
	key := append([]byte{0x12, sha256.Size}, sum[:]...) // the multihash that package routing makes
	return &announcements{
		Batching: dssync.MutexWrap(datastore.NewMapDatastore()),
		prefix:   records.ProvidersKeyPrefix + keyEncoding.EncodeToString(key) + "/",
		conduct:  conduct,
		kept:     make(map[datastore.Key]struct{}),
	}
}

var errNoRendezvous = errors.New("not this network's rendezvous")

// Put implements datastore.Datastore. What is not kept is no error to the DHT.
func (a *announcements) Put(ctx context.Context, key datastore.Key, value []byte) error {
	if !strings.HasPrefix(key.String(), a.prefix) {
		a.conduct.Note(announcerOf(key), "announces what is no offer", errNoRendezvous)
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

// forgetOne makes room: any may go, since all come again.
func (a *announcements) forgetOne(ctx context.Context) error {
	for key := range a.kept {
		delete(a.kept, key)
		return a.Batching.Delete(ctx, key)
	}
	return nil
}

// Delete implements datastore.Datastore.
func (a *announcements) Delete(ctx context.Context, key datastore.Key) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.kept, key)
	return a.Batching.Delete(ctx, key)
}

// Batch implements datastore.Batching; what is in it is bounded as well.
func (a *announcements) Batch(context.Context) (datastore.Batch, error) {
	return datastore.NewBasicBatch(a), nil
}

func announcerOf(key datastore.Key) p2ppeer.ID { return decodePeer(key.BaseNamespace()) }

// decodePeer reads an ID as the DHT writes it into keys; one that it cannot read is empty.
func decodePeer(text string) p2ppeer.ID {
	id, err := keyEncoding.DecodeString(text)
	if err != nil {
		return ""
	}
	return p2ppeer.ID(id)
}

// noCache is the cache of the DHT's provider records: one would keep what Put does not.
type noCache struct {
	simplelru.LRUCache // nil: the DHT calls nothing else
}

// Get implements simplelru.LRUCache.
func (noCache) Get(any) (any, bool) { return nil, false }

// Add implements simplelru.LRUCache.
func (noCache) Add(any, any) bool { return false }

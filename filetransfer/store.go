package filetransfer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Errors on which a caller acts.
var (
	// ErrMissing: the content is not in the store, or was found corrupted
	// there and has been dropped. Fetching it again helps.
	ErrMissing = errors.New("content is not in the store")
	// ErrFull: the content does not fit below the store's limit beside what
	// running jobs use. Another peer, or a later time, may do.
	ErrFull = errors.New("the store is full")
)

const (
	partialDir = "partial"
	fileMode   = 0o600
	dirMode    = 0o700
	stampEvery = time.Hour
)

// A Store is a peer's cache of contents by digest, in one folder:
//
//	<aa>/<digest>     complete: verified when its last byte arrived
//	partial/<digest>  pieces of a content, each in its place, to be resumed
//	web/<key>.json    what is known of a content from the web: see page.go
//
// A complete file comes to be by renaming a verified partial one, so it is
// never seen half-written, whenever the process is killed. Nothing is synced:
// after a power loss a file may hold wrong bytes, which Materialize finds out;
// pieces of a partial one are verified before they are resumed.
//
// A Store may be used by many goroutines of one process, and its folder by one
// process at a time.
type Store struct {
	dir   string
	limit int64

	pages sync.Mutex // held while pages are written and swept

	mu    sync.Mutex
	items map[Digest]*item
	bytes int64          // sum of items' bytes; never above limit
	uses  uint64         // counts uses, the clock of the eviction order
	pins  map[Digest]int // number of jobs that have pinned it
	jobs  map[string]jobPins
}

type jobPins map[Digest]struct{}

// An item is what the store holds, or has set space aside for, of one content.
type item struct {
	bytes    int64 // counted against the limit: of the file, or set aside for a claim
	used     uint64
	last     time.Time // when that was
	stamped  time.Time // when a use was last recorded in the file's time
	complete bool
	claim    *claim // non-nil while somebody is filling it
}

// OpenStore opens the cache in dir, which is made if need be, and takes up
// what an earlier process has left there, complete and partial. The limit is
// in bytes; content above it is evicted, partial and least recently used first.
func OpenStore(dir string, limit int64) (*Store, error) {
	if limit <= 0 {
		return nil, fmt.Errorf("open store %q: limit of %d bytes", dir, limit)
	}
	s := &Store{dir: dir, limit: limit, items: map[Digest]*item{}, pins: map[Digest]int{}, jobs: map[string]jobPins{}}
	if err := os.MkdirAll(filepath.Join(dir, partialDir), dirMode); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := s.index(); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if err := s.makeRoom(0); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// Path returns where the content lies if it is complete. Whoever keeps a path
// for longer than a moment pins the content first.
func (s *Store) Path(d Digest) string {
	name := d.String()
	return filepath.Join(s.dir, name[:2], name)
}

func (s *Store) partialPath(d Digest) string {
	return filepath.Join(s.dir, partialDir, d.String())
}

// Has reports whether the content is complete in the store.
func (s *Store) Has(d Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, ok := s.items[d]
	return ok && it.complete
}

// Bytes returns how much of the limit is taken.
func (s *Store) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// Open opens complete content for reading. The caller verifies what it reads;
// Materialize does. The error wraps ErrMissing when the store lacks it.
func (s *Store) Open(d Digest) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it, ok := s.items[d]; !ok || !it.complete {
		return nil, fmt.Errorf("open content %s: %w", d, ErrMissing)
	}
	f, err := os.Open(s.Path(d))
	if errors.Is(err, fs.ErrNotExist) { // somebody has cleared the folder under us
		s.forget(d)
		return nil, fmt.Errorf("open content %s: %w", d, ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("open content: %w", err)
	}
	return f, nil
}

// openPart opens content of which a part may be enough, complete or not.
func (s *Store) openPart(d Digest) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, ok := s.items[d]
	switch {
	case !ok:
		return nil, fmt.Errorf("open content %s: %w", d, ErrMissing)
	case it.complete:
		return os.Open(s.Path(d))
	}
	return os.Open(s.partialPath(d))
}

// drop removes complete content that was found to be corrupted, pinned or not.
func (s *Store) drop(d Digest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it, ok := s.items[d]; !ok || !it.complete {
		return nil
	}
	return s.remove(d)
}

// The methods below are called with mu held.

func (s *Store) use(it *item) {
	s.uses++
	it.used, it.last = s.uses, time.Now()
}

func (s *Store) add(d Digest, it *item) {
	s.use(it)
	s.items[d] = it
	s.bytes += it.bytes
}

func (s *Store) forget(d Digest) {
	s.bytes -= s.items[d].bytes
	delete(s.items, d)
}

func (s *Store) remove(d Digest) error {
	path := s.partialPath(d)
	if s.items[d].complete {
		path = s.Path(d)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.forget(d)
	return nil
}

// makeRoom evicts until need more bytes fit below the limit.
func (s *Store) makeRoom(need int64) error {
	excess := s.bytes + need - s.limit
	if excess <= 0 {
		return nil
	}
	candidates := s.evictable()
	drop, ok := chooseEvictions(candidates, excess)
	if !ok {
		return fmt.Errorf("%d more bytes beside %d in use, limit %d: %w", need, s.bytes-total(candidates), s.limit, ErrFull)
	}
	for _, d := range drop {
		if err := s.remove(d); err != nil {
			return fmt.Errorf("evict: %w", err)
		}
	}
	return nil
}

func total(candidates []candidate) (sum int64) {
	for _, c := range candidates {
		sum += c.bytes
	}
	return sum
}

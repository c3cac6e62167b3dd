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

// Errors that callers handle.
var (
	// ErrMissing reports that the content is not in the store, or was corrupted there and has been
	// removed. Fetching it again helps.
	ErrMissing = errors.New("content is not in the store")
	// errFull reports that the content does not fit below the store's limit together with the content of
	// running jobs. Another peer, or a later attempt, may succeed.
	errFull = errors.New("the store is full")
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
//	web/<key>.json    metadata of a content from the web: see page.go
//
// A complete file is created by renaming a verified partial one, so it is never incomplete, even after a
// kill. Files are not synced. After a power failure a file may hold wrong bytes; Materialize detects
// this, and the pieces of partial files are verified before they are resumed.
//
// A Store is safe for concurrent use. Only one process at a time may use its folder.
type Store struct {
	dir   string
	limit int64

	pages sync.Mutex // held while pages are written or swept

	mu    sync.Mutex
	items map[Digest]*item
	bytes int64          // sum of the items' bytes; never above limit
	uses  uint64         // use counter, the clock of the eviction order
	pins  map[Digest]int // number of jobs that have pinned the content
	jobs  map[string]jobPins
}

type jobPins map[Digest]struct{}

// An item is the state of one content that the store holds or has reserved space for.
type item struct {
	bytes    int64 // counted against the limit: size of the file, or reserved for a claim
	used     uint64
	last     time.Time // time of the last use
	stamped  time.Time // when a use was last recorded in the file's modification time
	complete bool
	claim    *claim // non-nil while the content is being filled
}

// OpenStore opens the cache in dir, which it creates if necessary, and registers the complete and partial
// files of an earlier process. The limit is in bytes. Content above it is evicted, partial and least
// recently used first.
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

// Path returns the path of the content if it is complete. A caller that keeps the path for longer must
// pin the content first.
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

// Bytes returns how much of the limit is used.
func (s *Store) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// Open opens complete content for reading. The caller must verify the data, as Materialize does. The
// error wraps ErrMissing if the store lacks the content.
func (s *Store) Open(d Digest) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it, ok := s.items[d]; !ok || !it.complete {
		return nil, fmt.Errorf("open content %s: %w", d, ErrMissing)
	}
	f, err := os.Open(s.Path(d))
	if errors.Is(err, fs.ErrNotExist) { // another program removed the file
		s.forget(d)
		return nil, fmt.Errorf("open content %s: %w", d, ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("open content: %w", err)
	}
	return f, nil
}

// openPart opens content, complete or partial.
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

// The callers of the methods below hold mu.

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

// makeRoom evicts content until need more bytes fit below the limit.
func (s *Store) makeRoom(need int64) error {
	excess := s.bytes + need - s.limit
	if excess <= 0 {
		return nil
	}
	candidates := s.evictable()
	drop, ok := chooseEvictions(candidates, excess)
	if !ok {
		return fmt.Errorf("%d more bytes in addition to %d in use, limit %d: %w", need, s.bytes-total(candidates), s.limit, errFull)
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

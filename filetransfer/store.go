package filetransfer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	dir   folder
	limit int64
	pages pages

	mu    sync.Mutex
	items map[Digest]*item
	bytes int64  // sum of the items' bytes; never above limit
	uses  uint64 // use counter, the clock of the eviction order
	pins  pins
}

// An item is the state of one content that the store holds or has reserved space for.
type item struct {
	bytes    int64 // counted against the limit: size of the file, or reserved for a claim
	used     uint64
	last     time.Time // time of the last use
	stamped  time.Time // time of the last use that the file's modification time records
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
	s := &Store{dir: folder(dir), limit: limit, pages: pages{dir: folder(dir)}, items: map[Digest]*item{}, pins: pins{}}
	err := os.MkdirAll(filepath.Join(dir, partialDir), dirMode)
	if err == nil {
		err = s.index()
	}
	if err == nil {
		err = s.makeRoom(0)
	}
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return s, nil
}

// index registers the files of the store's directory in the order of their last use. Partial files count
// as used before all others, so they are evicted first.
func (s *Store) index() error {
	files, err := s.dir.scan()
	if err != nil {
		return err
	}
	slices.SortStableFunc(files, func(a, b indexed) int {
		switch {
		case a.complete == b.complete:
			return a.used.Compare(b.used)
		case b.complete:
			return -1
		}
		return 1
	})
	for _, f := range files {
		if s.items[f.digest] != nil { // a partial file superseded by the complete one
			if err := s.remove(f.digest); err != nil {
				return err
			}
		}
		it := &item{bytes: f.bytes, stamped: f.used, complete: f.complete}
		s.add(f.digest, it)
		it.last = f.used
	}
	return nil
}

// Path returns the path of the content if it is complete. A caller that keeps the path for longer must
// pin the content first.
func (s *Store) Path(d Digest) string { return s.dir.content(d) }

// Has reports whether the content is complete in the store.
func (s *Store) Has(d Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, ok := s.items[d]
	return ok && it.complete
}

// keeps reports whether the store has the content of a page, completely or in part.
func (s *Store) keeps(key Digest, p page) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, err := ParseDigest(p.Digest)
	it := s.items[d]
	return s.items[key] != nil || err == nil && it != nil && it.complete
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
	return os.Open(s.dir.partial(d))
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

// Contents lists the contents of the store, the most recently used first.
func (s *Store) Contents() []Content {
	urls := s.pages.urls()
	s.mu.Lock()
	defer s.mu.Unlock()
	return list(s.items, s.pins, urls)
}

// Limit returns how many bytes the store may hold.
func (s *Store) Limit() int64 { return s.limit }

// Trim evicts content that no job uses, the least recently used first, until the store holds at most to
// bytes. If to is 0, Trim evicts all such content. It returns the number of freed bytes. Content in use
// stays (T4).
func (s *Store) Trim(to int64) (freed int64, err error) {
	freed, err = s.trim(to)
	s.pages.sweep(s.keeps)
	return freed, err
}

func (s *Store) trim(to int64) (freed int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, candidates := s.bytes, s.evictable()
	drop, _ := chooseEvictions(candidates, min(s.bytes-to, total(candidates)))
	if to == 0 { // including those of size 0
		for _, c := range candidates {
			drop = append(drop, c.digest)
		}
	}
	for _, d := range drop {
		if s.items[d] == nil {
			continue
		}
		if err := s.remove(d); err != nil {
			return before - s.bytes, err
		}
	}
	return before - s.bytes, nil
}

// Pin protects the contents from eviction until Unpin of the same job (promise T4). They may still be
// missing; a later Fetch then brings them in pinned. Pin is idempotent.
func (s *Store) Pin(job string, contents []Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range contents {
		s.pin(job, d)
	}
}

// Unpin removes all pins of the job. The contents stay until their space is needed.
func (s *Store) Unpin(job string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.pins.remove(job) {
		if it, ok := s.items[d]; ok && it.complete {
			s.stamp(d, it)
		}
	}
}

// The callers of the methods below hold mu.

func (s *Store) pin(job string, d Digest) {
	first := s.pins.add(job, d)
	if it, ok := s.items[d]; ok && it.complete {
		s.use(it)
		if first {
			s.stamp(d, it)
		}
	}
}

// stamp sets the file's modification time to the time of its use, so that the next process keeps the
// eviction order. It does so at most once per stampEvery, to save system calls for jobs with many small
// files. Serve refuses a file whose modification time has changed, and may offer any pinned content. So
// content is stamped only when the first job pins it and when the last job unpins it.
func (s *Store) stamp(d Digest, it *item) {
	if now := time.Now(); now.Sub(it.stamped) >= stampEvery {
		it.stamped = now
		_ = os.Chtimes(s.Path(d), now, now) // a failure only makes a later eviction choice worse
	}
}

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
	path := s.dir.partial(d)
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

// evictable lists the content that may be evicted.
func (s *Store) evictable() (candidates []candidate) {
	for d, it := range s.items {
		if it.claim == nil && len(s.pins[d]) == 0 {
			candidates = append(candidates, candidate{digest: d, bytes: it.bytes, used: it.used})
		}
	}
	return candidates
}

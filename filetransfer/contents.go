package filetransfer

import (
	"slices"
	"time"
)

// A Content describes one content that a Store holds or is receiving.
type Content struct {
	Digest   string    `json:"digest"`
	Bytes    int64     `json:"bytes"` // counted against the limit
	Complete bool      `json:"complete"`
	Arriving bool      `json:"arriving,omitempty"`
	Used     time.Time `json:"used"`          // time of the last use; to the hour for uses by an earlier process
	Jobs     []string  `json:"jobs"`          // jobs that have pinned it, which prevents eviction
	URL      string    `json:"url,omitempty"` // source on the web, if any
}

// Contents lists the contents of the store, the most recently used first.
func (s *Store) Contents() []Content {
	urls := s.urls()
	s.mu.Lock()
	defer s.mu.Unlock()
	users := make(map[Digest][]string)
	for job, pins := range s.jobs {
		for d := range pins {
			users[d] = append(users[d], job)
		}
	}
	all := make([]Content, 0, len(s.items))
	for d, it := range s.items {
		jobs := append([]string{}, users[d]...) // an empty list in JSON, not null
		slices.Sort(jobs)
		all = append(all, Content{
			Digest: d.String(), Bytes: it.bytes, Complete: it.complete, Arriving: it.claim != nil,
			Used: it.last, Jobs: jobs, URL: urls[d],
		})
	}
	slices.SortFunc(all, func(a, b Content) int {
		if c := b.Used.Compare(a.Used); c != 0 {
			return c
		}
		return slices.Compare([]byte(a.Digest), []byte(b.Digest))
	})
	return all
}

// Limit returns how many bytes the store may hold.
func (s *Store) Limit() int64 { return s.limit }

// Trim evicts content that no job uses, the least recently used first, until the store holds at most to
// bytes. With 0 it evicts all such content. It returns the number of bytes freed. Content in use stays
// (T4).
func (s *Store) Trim(to int64) (freed int64, err error) {
	freed, err = s.trim(to)
	s.pages.Lock()
	defer s.pages.Unlock()
	s.sweepPages()
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

// evictable lists the content that may be evicted. The caller holds mu.
func (s *Store) evictable() (candidates []candidate) {
	for d, it := range s.items {
		if it.claim == nil && s.pins[d] == 0 {
			candidates = append(candidates, candidate{digest: d, bytes: it.bytes, used: it.used})
		}
	}
	return candidates
}

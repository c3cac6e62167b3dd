package filetransfer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// What is known of contents from the web lies beside them:
//
//	web/<key>.json  a page, for each URL whose content is in the store, whole or in part

const webDir = "web"

// A page is what a server has said of the content at a URL.
type page struct {
	URL          string `json:"url"` // for people, without a password
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"lastModified,omitempty"`
	Digest       string `json:"digest,omitempty"` // of the content, once it is here
}

// validator names the version of the content byte by byte, or is empty.
func (p page) validator() string {
	if p.ETag != "" && !strings.HasPrefix(p.ETag, "W/") {
		return p.ETag
	}
	return ""
}

func (s *Store) pagePath(key Digest) string {
	return filepath.Join(s.dir, webDir, key.String()+".json")
}

// readPage returns what is known of a URL, if anything.
func (s *Store) readPage(key Digest) (p page) {
	text, err := os.ReadFile(s.pagePath(key))
	if err == nil && json.Unmarshal(text, &p) != nil {
		return page{}
	}
	return p
}

// writePage notes p, and forgets the pages of contents that are gone.
func (s *Store) writePage(key Digest, p page) error {
	s.pages.Lock()
	defer s.pages.Unlock()
	text, err := json.Marshal(p)
	if err == nil {
		err = os.MkdirAll(filepath.Join(s.dir, webDir), dirMode)
	}
	s.sweepPages()
	if err == nil {
		err = os.WriteFile(s.pagePath(key), text, fileMode) // one that is torn by a kill is as good as none
	}
	if err != nil {
		return fmt.Errorf("keep what the server said: %w", err)
	}
	return nil
}

// sweepPages removes the pages of which the store has nothing any more. Called with pages held, or
// it would remove one that is just being written.
func (s *Store) sweepPages() {
	entries, _ := os.ReadDir(filepath.Join(s.dir, webDir))
	for _, e := range entries {
		name, isPage := strings.CutSuffix(e.Name(), ".json")
		key, err := ParseDigest(name)
		if !isPage || err != nil {
			continue
		}
		d, err := ParseDigest(s.readPage(key).Digest)
		if s.holds(key) || err == nil && s.Has(d) {
			continue
		}
		os.Remove(s.pagePath(key)) // one that stays is of no harm
	}
}

// urls returns where contents come from, whole or in part.
func (s *Store) urls() map[Digest]string {
	s.pages.Lock()
	defer s.pages.Unlock()
	urls := make(map[Digest]string)
	entries, _ := os.ReadDir(filepath.Join(s.dir, webDir))
	for _, e := range entries {
		key, err := ParseDigest(strings.TrimSuffix(e.Name(), ".json"))
		if err != nil {
			continue
		}
		p := s.readPage(key)
		urls[key] = p.URL
		if d, err := ParseDigest(p.Digest); err == nil {
			urls[d] = p.URL
		}
	}
	return urls
}

// holds reports whether any of a content is here.
func (s *Store) holds(d Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.items[d] != nil
}

package filetransfer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The store keeps metadata of contents from the web:
//
//	web/<key>.json  a page, for each URL whose content is in the store, completely or in part

const webDir = "web"

// A page is the metadata of a URL's content from the server's response.
type page struct {
	URL          string `json:"url"` // for display, without a password
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"lastModified,omitempty"`
	Digest       string `json:"digest,omitempty"` // of the content, once it has arrived
}

// validator returns the strong ETag of the content, or "".
func (p page) validator() string {
	if p.ETag != "" && !strings.HasPrefix(p.ETag, "W/") {
		return p.ETag
	}
	return ""
}

func (s *Store) pagePath(key Digest) string {
	return filepath.Join(s.dir, webDir, key.String()+".json")
}

// readPage returns the page of a URL, or the zero page.
func (s *Store) readPage(key Digest) (p page) {
	text, err := os.ReadFile(s.pagePath(key))
	if err == nil && json.Unmarshal(text, &p) != nil {
		return page{}
	}
	return p
}

// writePage writes p, and removes the pages of contents that the store no longer has.
func (s *Store) writePage(key Digest, p page) error {
	s.pages.Lock()
	defer s.pages.Unlock()
	text, err := json.Marshal(p)
	if err == nil {
		err = os.MkdirAll(filepath.Join(s.dir, webDir), dirMode)
	}
	s.sweepPages()
	if err == nil {
		err = os.WriteFile(s.pagePath(key), text, fileMode) // a torn page, after a kill, is ignored
	}
	if err != nil {
		return fmt.Errorf("record the server's response: %w", err)
	}
	return nil
}

// sweepPages removes the pages whose contents the store no longer has. The caller holds pages; otherwise
// sweepPages could remove a page that is being written.
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
		os.Remove(s.pagePath(key)) // a page that remains is harmless
	}
}

// urls returns the URLs of contents from the web, complete or partial.
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

// holds reports whether the store holds any part of a content.
func (s *Store) holds(d Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.items[d] != nil
}

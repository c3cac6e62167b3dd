package filetransfer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// The store keeps metadata of contents from the web:
//
//	web/<key>.json  a page for each URL whose content is in the store, completely or partly

const webDir = "web"

// A page is the metadata of a URL's content from the server's response.
type page struct {
	URL          string `json:"url"` // for display, without a password
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"lastModified,omitempty"`
	Digest       string `json:"digest,omitempty"` // digest of the content, once it has arrived
}

// validator returns the strong ETag of the content, or "".
func (p page) validator() string {
	if p.ETag != "" && !strings.HasPrefix(p.ETag, "W/") {
		return p.ETag
	}
	return ""
}

// pages holds the pages of a store.
type pages struct {
	dir folder
	mu  sync.Mutex // held while pages are written or swept
}

// read returns the page of a URL, or the zero page.
func (ps *pages) read(key Digest) (p page) {
	text, err := os.ReadFile(ps.dir.page(key))
	if err == nil && json.Unmarshal(text, &p) != nil {
		return page{}
	}
	return p
}

// write writes p, and removes the pages that keep rejects.
func (ps *pages) write(key Digest, p page, keep func(Digest, page) bool) error {
	ps.sweep(keep)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	text, err := json.Marshal(p)
	if err == nil {
		err = os.MkdirAll(filepath.Join(string(ps.dir), webDir), dirMode)
	}
	if err == nil {
		err = os.WriteFile(ps.dir.page(key), text, fileMode) // a torn page, after a kill, is ignored
	}
	if err != nil {
		return fmt.Errorf("record the server's response: %w", err)
	}
	return nil
}

// sweep removes the pages that keep rejects. It holds mu, so that it removes no page that is being written.
func (ps *pages) sweep(keep func(Digest, page) bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	entries, _ := os.ReadDir(filepath.Join(string(ps.dir), webDir))
	for _, e := range entries {
		name, isPage := strings.CutSuffix(e.Name(), ".json")
		key, err := ParseDigest(name)
		if !isPage || err != nil {
			continue
		}
		if !keep(key, ps.read(key)) {
			os.Remove(ps.dir.page(key)) // a page that remains is harmless
		}
	}
}

// urls returns the URLs of contents from the web, complete or partial.
func (ps *pages) urls() map[Digest]string {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	urls := make(map[Digest]string)
	entries, _ := os.ReadDir(filepath.Join(string(ps.dir), webDir))
	for _, e := range entries {
		key, err := ParseDigest(strings.TrimSuffix(e.Name(), ".json"))
		if err != nil {
			continue
		}
		p := ps.read(key)
		urls[key] = p.URL
		if d, err := ParseDigest(p.Digest); err == nil {
			urls[d] = p.URL
		}
	}
	return urls
}

package inputs

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/p2pmpi/p2pmpi/filetransfer"
)

func isURL(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")
}

const digestPrefix = "sha256:"

// parseURL parses "URL [sha256:HEX] [as PATH]". Without a PATH the file is staged under the last element of the
// URL's path.
func parseURL(line string) (d filetransfer.Download, err error) {
	var rest string
	d.URL, rest, _ = strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	if word, more, _ := strings.Cut(rest, " "); strings.HasPrefix(word, digestPrefix) {
		d.Digest, rest = strings.TrimPrefix(word, digestPrefix), strings.TrimSpace(more)
	}
	given, isPath := strings.CutPrefix(rest, "as ")
	switch {
	case isPath:
		d.Path = path.Clean(strings.TrimSpace(given))
	case rest != "":
		return d, fmt.Errorf("input %s: %.80q: want URL [sha256:DIGEST] [as PATH]", redacted(d.URL), rest)
	default:
		d.Path = lastName(d.URL)
	}
	if d.Path == "" {
		return d, fmt.Errorf("input %s: the URL names no file; give a path to stage it under: URL as PATH", redacted(d.URL))
	}
	if err := d.Validate(); err != nil {
		return d, fmt.Errorf("input %s: %w", redacted(d.URL), err)
	}
	return d, nil
}

func lastName(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "file" // Validate reports the problem
	}
	name := path.Base(path.Clean("/" + u.Path))
	if name == "/" || strings.HasSuffix(u.Path, "/") {
		return ""
	}
	return name
}

// redacted returns a URL without its password.
func redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "URL"
	}
	return u.Redacted()
}

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	pageLink   = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	codeBlock  = regexp.MustCompile("(?s)```.*?```")
	codeSpan   = regexp.MustCompile("`[^`\n]*`")
	heading    = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	explicitID = regexp.MustCompile(`<a id="([^"]+)">`)
	dropped    = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinksLeadSomewhere checks that each link of README and of the pages in docs leads to a file and, if it names
// a heading, to a heading of that file.
func TestLinksLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, page := range append(pages, "../README.md") {
		text := codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(read(t, page), ""), "")
		for _, m := range pageLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			name, id, _ := strings.Cut(m[1], "#")
			target := page
			if name != "" {
				target = filepath.Join(filepath.Dir(page), name)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link %s: %v", page, m[1], err)
			} else if id != "" && !headings(read(t, target))[id] {
				t.Errorf("%s: link %s: no such heading", page, m[1])
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}

// headings returns the IDs of the headings of a page, as GitHub makes them, and its explicit IDs.
func headings(page string) map[string]bool {
	ids := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(page, ""), -1) {
		ids[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	for _, m := range explicitID.FindAllStringSubmatch(page, -1) {
		ids[m[1]] = true
	}
	return ids
}

// read returns the text of a file.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

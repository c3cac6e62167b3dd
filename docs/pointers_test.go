package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages lists the pages whose references to the source are checked.
var pages = []string{"ARCHITECTURE.md", "rationale.md"}

// reference matches identifiers in a file or a package of the source, such as "`a` and `b` in `c.go`", or a file or a
// package with identifiers after it, such as "`c.go` `a`, `b`".
var reference = regexp.MustCompile("((?:`\\w+`,?(?: and)? )+)in `([\\w./]+)`|`([\\w./]+)`((?:,? `\\w+`)*)")

// identifier matches an identifier in a reference.
var identifier = regexp.MustCompile("`(\\w+)`")

// shortPaths maps the first elements of the short paths of the pages to folders.
var shortPaths = map[string]string{
	"launch": "peer/launch", "submit": "peer/job/submit", "viewgroup": "peer/job/viewgroup", "engine": "mpj/internal/engine", "job": "peer/job",
}

// TestPagesReferToTheSource checks that the files that the pages name exist, and that files and packages contain the
// identifiers that the pages name with them.
func TestPagesReferToTheSource(t *testing.T) {
	source := readSource(t)
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks(string(text)) {
			folder := ""
			for _, m := range reference.FindAllStringSubmatch(block, -1) {
				folder = source.check(t, page, folder, m[2]+m[3], identifier.FindAllStringSubmatch(m[1]+m[4], -1), &found)
			}
		}
	}
	if found < 200 {
		t.Errorf("only %d identifiers were found", found)
	}
}

// blocks divides a page into paragraphs, list items and table rows.
func blocks(page string) []string {
	return regexp.MustCompile(`\n\n|\n\|`).Split(regexp.MustCompile(`\n(\d+\.|-) `).ReplaceAllString(page, "\n\n"), -1)
}

// A source is the Go code of the project.
type source struct {
	files   map[string]string // texts by path
	folders map[string]string // texts of the files directly in each folder, without tests
}

func readSource(t *testing.T) source {
	t.Helper()
	s := source{make(map[string]string), make(map[string]string)}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".go" {
			return err
		}
		text, err := os.ReadFile(file)
		name := strings.TrimPrefix(filepath.ToSlash(file), "../")
		s.files[name] = string(text)
		if !strings.HasSuffix(name, "_test.go") {
			s.folders[path.Dir(name)] += string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// check checks a reference. A file without a folder is in the given folder, which the block of the page named before
// it. The result is the folder of the reference, or the given folder if name is neither a file nor a package.
func (s source) check(t *testing.T, page, folder, name string, ids [][]string, found *int) string {
	t.Helper()
	full := s.expand(folder, name)
	text, isFile := s.files[full]
	code, isFolder := s.folders[full]
	switch {
	case strings.HasSuffix(name, ".go") && !isFile:
		t.Errorf("%s: there is no file %s", page, full)
		return folder
	case !isFile && !isFolder:
		return folder
	}
	for _, id := range ids {
		*found++
		_, sibling := s.folders[path.Join(path.Dir(full), id[1])]
		if !regexp.MustCompile(`\b`+id[1]+`\b`).MatchString(text+code) && !(isFolder && sibling) {
			t.Errorf("%s: %s does not contain %s", page, full, id[1])
		}
	}
	if isFile {
		return path.Dir(full)
	}
	return full
}

// expand returns the full path of a file or package in a page.
func (s source) expand(folder, name string) string {
	first, rest, long := strings.Cut(name, "/")
	_, isFolder := s.folders[name]
	_, isFile := s.files[name]
	switch {
	case !long && strings.HasSuffix(name, ".go"):
		return path.Join(folder, name)
	case !isFile && !isFolder && shortPaths[first] != "":
		return path.Join(shortPaths[first], rest)
	}
	return name
}

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pointer matches a file of the source, and the identifiers that ARCHITECTURE.md names in it.
var pointer = regexp.MustCompile("`([\\w/]+\\.go)`((?:,? `\\w+`)*)")

// shortPaths maps the short paths of ARCHITECTURE.md to folders.
var shortPaths = strings.NewReplacer("launch/", "peer/launch/", "submit/", "peer/job/submit/", "viewgroup/", "peer/job/viewgroup/", "engine/", "mpj/internal/engine/", "job/", "peer/job/")

// TestArchitecturePointsToTheSource checks that the files that ARCHITECTURE.md names exist, and contain the
// identifiers that it names right after them.
func TestArchitecturePointsToTheSource(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	files := sourceFiles(t)
	found := 0
	for _, m := range pointer.FindAllStringSubmatch(string(page), -1) {
		texts := textsOf(files, m[1])
		if len(texts) == 0 {
			t.Errorf("there is no file %s", m[1])
			continue
		}
		for name := range strings.FieldsFuncSeq(m[2], func(r rune) bool { return strings.ContainsRune("`, ", r) }) {
			found++
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(texts) {
				t.Errorf("%s does not contain %s", m[1], name)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d identifiers were found", found)
	}
}

// sourceFiles returns the Go files of the project by path.
func sourceFiles(t *testing.T) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(filepath.ToSlash(path), "../")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// textsOf returns the texts of the files that a path names, which may be short or only a file name.
func textsOf(files map[string]string, path string) (texts string) {
	for _, p := range []string{path, shortPaths.Replace(path)} {
		for file, text := range files {
			if file == p || !strings.Contains(path, "/") && filepath.Base(file) == path {
				texts += text
			}
		}
	}
	return texts
}

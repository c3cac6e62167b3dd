package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// maxCorpora limits the total size of all corpora of fuzz targets, in bytes. maxSeeds limits the number of
// inputs of one target.
const (
	maxCorpora = 1 << 20
	maxSeeds   = 24
)

// TestCorporaAreSmallAndOfTargets checks that each fuzz target has a corpus, and that each corpus belongs to a
// target of its package. Otherwise no test would run its inputs.
func TestCorporaAreSmallAndOfTargets(t *testing.T) {
	seeds := make(map[string]int) // number of inputs in each folder
	var size int64
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		folder := filepath.ToSlash(filepath.Dir(name))
		if err != nil || d.IsDir() || !strings.Contains(folder, "/testdata/fuzz/") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		size += info.Size()
		seeds[folder]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	targets := corpora(t)
	for _, folder := range targets {
		if n := seeds[folder]; n < 1 || n > maxSeeds {
			t.Errorf("%s has %d inputs, want 1 to %d", folder, n, maxSeeds)
		}
		delete(seeds, folder)
	}
	for folder := range seeds {
		t.Errorf("%s: there is no %s", folder, path.Base(folder))
	}
	if len(targets) < 60 || size > maxCorpora {
		t.Errorf("%d targets have %d bytes", len(targets), size)
	}
}

// corpora returns the folders where go test looks for the inputs of the module's fuzz targets.
func corpora(t *testing.T) (folders []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, target := range fuzzTargets(f) {
			folders = append(folders, filepath.ToSlash(filepath.Dir(name))+"/testdata/fuzz/"+target)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

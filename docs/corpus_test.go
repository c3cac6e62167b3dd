package docs

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// maxCorpora is what all inputs that are kept for fuzz targets may have together, in bytes, and maxSeeds how
// many one target may have.
const (
	maxCorpora = 1 << 20
	maxSeeds   = 24
)

// TestCorporaAreSmallAndOfTargets: inputs that are kept belong to a fuzz target of their package, or nobody runs them.
func TestCorporaAreSmallAndOfTargets(t *testing.T) {
	tests := allTests(t)
	var size int64
	seeds := make(map[string]int) // of each target's folder
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		folder := filepath.ToSlash(filepath.Dir(path))
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
	for folder, n := range seeds {
		if name := filepath.Base(folder); tests[name] == nil {
			t.Errorf("%s: there is no %s", folder, name)
		}
		if n > maxSeeds {
			t.Errorf("%s has %d inputs, more than %d", folder, n, maxSeeds)
		}
	}
	if len(seeds) < 30 || size > maxCorpora {
		t.Errorf("%d targets have %d bytes", len(seeds), size)
	}
}

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write creates files with the given contents in a new directory and changes to that directory.
func write(t *testing.T, contents map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range contents {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestListIsSortedAndReportsSkippedFiles(t *testing.T) {
	write(t, map[string]string{"b.txt": "12", "a/z": "1", "a.txt": "", ".hidden": "123"})
	if err := os.Symlink("b.txt", "link"); err != nil {
		t.Fatal(err)
	}
	files, others, err := list(".")
	want := []file{{".hidden", 3}, {"a.txt", 0}, {"a/z", 1}, {"b.txt", 2}}
	if err != nil || !slices.Equal(files, want) || !slices.Equal(others, []string{"link"}) {
		t.Errorf("list returned %v, %q, %v; want %v", files, others, err, want)
	}
}

func TestListFailsWithoutAFolder(t *testing.T) {
	if _, _, err := list(filepath.Join(t.TempDir(), "none")); err == nil || !strings.HasPrefix(err.Error(), "list files: ") {
		t.Error(err)
	}
}

// sized returns files of the given sizes, named a, b, c, ...
func sized(sizes ...int64) []file {
	var files []file
	for i, size := range sizes {
		files = append(files, file{string(rune('a' + i)), size})
	}
	return files
}

func TestSharesAreBalanced(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files []file
		ranks int
		want  string
	}{
		{"none", nil, 2, "|"},
		{"alone", sized(1, 2, 3), 1, "cba"},
		{"fewer files than ranks", sized(5), 3, "a||"},
		{"one large file", sized(1000, 90_000, 1000, 1000), 2, "b|acd"},
		{"empty files are distributed evenly", sized(0, 0, 0, 0), 2, "ac|bd"},
		{"by size", sized(30_000, 20_000, 10_000, 40_000), 2, "dc|ab"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, share := range shares(tc.files, tc.ranks) {
				got = append(got, names(share))
			}
			if s := strings.Join(got, "|"); s != tc.want {
				t.Errorf("the shares are %s, want %s", s, tc.want)
			}
		})
	}
}

func TestBatchesHoldEveryFileOnce(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files []file
		want  string
	}{
		{"none", nil, ""},
		{"one", sized(1), "a"},
		{"large files alone", sized(batchSize, 2*batchSize, 5), "a|b|c"},
		{"small files together", sized(batchSize/2, batchSize/4, batchSize/4, 1, 1), "abc|de"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, batch := range batches(tc.files) {
				got = append(got, names(batch))
			}
			if s := strings.Join(got, "|"); s != tc.want {
				t.Errorf("the batches are %s, want %s", s, tc.want)
			}
		})
	}
}

func names(files []file) string {
	var b strings.Builder
	for _, f := range files {
		b.WriteString(f.Name)
	}
	return b.String()
}

func TestOwnersShareTheWords(t *testing.T) {
	owned := make([]int, 3)
	for c := 'a'; c <= 'z'; c++ {
		owned[owner(string(c), 3)]++
	}
	if slices.Min(owned) < 4 {
		t.Errorf("26 words belong to 3 ranks as %v", owned)
	}
	if got := owner("master", 7); got != owner("master", 7) || got < 0 || got >= 7 {
		t.Errorf("rank %d", got)
	}
}

package filetransfer

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/p2pmpi/p2pmpi/filetransfer/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/walk"
)

// exchanges lists the replacements that an attacker may put in the place of out/file after it was matched.
// outside is a folder of the owner, with a file of the same name.
var exchanges = map[string]func(dir, outside string) error{
	"a link in place of its folder": func(dir, outside string) error {
		folder := filepath.Join(dir, "out")
		return errors.Join(os.RemoveAll(folder), os.Symlink(outside, folder))
	},
	"a link": func(dir, outside string) error {
		file := filepath.Join(dir, "out/file")
		return errors.Join(os.Remove(file), os.Symlink(filepath.Join(outside, "file"), file))
	},
	"a link that begins in the folder": func(dir, outside string) error {
		file := filepath.Join(dir, "out/file")
		to, err := filepath.Rel(filepath.Join(dir, "out"), filepath.Join(outside, "file"))
		return errors.Join(err, os.Remove(file), os.Symlink(to, file))
	},
	"a named pipe": func(dir, _ string) error {
		file := filepath.Join(dir, "out/file")
		return errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600))
	},
	"a folder": func(dir, _ string) error {
		file := filepath.Join(dir, "out/file")
		return errors.Join(os.Remove(file), os.Mkdir(file, 0o700))
	},
}

// TestT3ReplacedFilesAreNotRead replaces matched files before they are hashed, and before they are sent. No
// file of the owner is read, and no read blocks on a pipe.
func TestT3ReplacedFilesAreNotRead(t *testing.T) {
	for name, exchange := range exchanges {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir, outside := filepath.Join(top, "scratch"), filepath.Join(top, "owner")
			for _, d := range []string{filepath.Join(dir, "out"), outside} {
				writeFile(t, filepath.Join(d, "file"), []byte("of one size"))
			}
			found, err := Match(t.Context(), dir, []string{"out"})
			if err != nil || len(found) != 1 {
				t.Fatalf("Match returned %v, %v", found, err)
			}
			f, info, err := found[0].open()
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
			if err := exchange(dir, outside); err != nil {
				t.Fatal(err)
			}
			if m, err := Build(t.Context(), found); err == nil {
				t.Errorf("the file was hashed: %v", m)
			}
			offered := served{from: found[0], size: info.Size(), modTime: info.ModTime()}
			b, refusal, err := readServed(offered, 0, make([]byte, pieceSize))
			if b != nil || refusal != pb.Refusal_REFUSAL_UNREADABLE || err == nil {
				t.Errorf("readServed returned %q, %v, %v", b, refusal, err)
			}
		})
	}
}

func TestMatch(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.out", "b.txt", "res/a.out", "res/deep/c.out", "other/d.out"} {
		writeFile(t, filepath.Join(dir, name), nil)
	}
	outside := t.TempDir()
	writeFile(t, filepath.Join(outside, "secret.out"), nil)
	for link, to := range map[string]string{"link.out": filepath.Join(outside, "secret.out"), "res/out": outside} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name     string
		patterns []string
		want     []string
	}{
		{"no pattern", nil, nil},
		{"top only", []string{"*.out"}, []string{"a.out"}},
		{"in a folder", []string{"res/*.out"}, []string{"res/a.out"}},
		{"a folder", []string{"res"}, []string{"res/a.out", "res/deep/c.out"}},
		{"folders", []string{"*/*.out"}, []string{"other/d.out", "res/a.out"}},
		{"several, each file once", []string{"a.*", "*.out", "b.txt"}, []string{"a.out", "b.txt"}},
		{"everything but links", []string{"*"}, []string{"a.out", "b.txt", "other/d.out", "res/a.out", "res/deep/c.out"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found, err := Match(t.Context(), dir, tt.patterns)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found {
				got = append(got, f.Path)
				if f.Within != dir || f.From != f.Path {
					t.Errorf("%s matched as %s in %s", f.Path, f.From, f.Within)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	for _, bad := range []string{"", "/etc/*", "../*", "[", "a//b"} {
		if _, err := Match(t.Context(), dir, []string{bad}); err == nil {
			t.Errorf("pattern %q was accepted", bad)
		}
	}
}

// TestMatchInDeepFolders: folders that no pattern matches are skipped, however deep. A match that is too
// deep is an error.
func TestMatchInDeepFolders(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "a.out"), nil)
	writeFile(t, filepath.Join(dir, "deep", strings.Repeat("d/", MaxPathDepth-2), "at the bound"), nil)
	if found, err := Match(t.Context(), dir, []string{"*"}); err != nil || len(found) != 2 {
		t.Errorf("at the bound: %v, %v", found, err)
	}
	writeFile(t, filepath.Join(dir, "deep", strings.Repeat("d/", MaxPathDepth-1), "beyond"), nil)
	if found, err := Match(t.Context(), dir, []string{"*.out"}); err != nil || len(found) != 1 {
		t.Errorf("next to a deep folder, Match returned %v, %v", found, err)
	}
	if _, err := Match(t.Context(), dir, []string{"deep"}); err == nil {
		t.Error("a too deeply nested file was matched")
	}
}

// TestO4MatchingIsBounded: the work is bounded, besides the numbers of names and patterns.
func TestO4MatchingIsBounded(t *testing.T) {
	dir, name := t.TempDir(), strings.Repeat("a", 240)
	const files = 100
	for i := range files {
		writeFile(t, filepath.Join(dir, name+strconv.Itoa(i)), nil)
	}
	patterns := slices.Repeat([]string{"*" + strings.Repeat("?", 100) + "b"}, MaxPatterns)
	work := int64(len(patterns)) * int64(len(patterns[0])+1) * int64(len(name)+1) * files / 10
	c := collection{ctx: t.Context(), dir: dir, patterns: patterns, work: work}
	if err := walk.Walk(dir, c.visit); !errors.Is(err, errTooMuchWork) || c.visited > files/5 {
		t.Errorf("Match visited %d names of %d: %v", c.visited, files, err)
	}
	// Usual patterns are far below the bound.
	if usual := int64(len("results/*.out")+1) * int64(len("results/part-000.out")+1) * maxWalk * 64; usual > maxWork {
		t.Errorf("64 ordinary patterns exceed the limit: %d", usual)
	}
}

// TestMatchToleratesInvalidNames: one odd name does not keep other files from being collected.
func TestMatchToleratesInvalidNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "new\nline", "esc\x1b[2J", "latin\xe9"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			skip.Lacks(t, err) // a file system that does not allow such names
		}
	}
	found, err := Match(t.Context(), dir, []string{"*"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Build(t.Context(), found); err != nil {
		t.Error(err)
	}
	var names []string
	for _, s := range found {
		names = append(names, s.Path)
	}
	slices.Sort(names)
	if want := []string{"a", "esc%1B[2J", "latin%E9", "new%0Aline"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

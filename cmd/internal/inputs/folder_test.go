package inputs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/filetransfer"
)

// link creates a symbolic link in dir.
func link(t *testing.T, to, dir, name string) {
	t.Helper()
	if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func TestFolderIsStagedRecursively(t *testing.T) {
	cwd := folder(t, "data/a", "data/sub/deep/b", "data/.hidden", "c")
	link(t, "sub/deep/b", filepath.Join(cwd, "data"), "file")
	link(t, "sub", filepath.Join(cwd, "data"), "folder")
	want := []string{"data/.hidden", "data/a", "data/file", "data/folder/deep/b", "data/sub/deep/b"}
	for _, name := range []string{"data", "data/"} {
		got, _, err := Resolve(cwd, []string{name, "data/a"})
		var paths []string
		for _, s := range got {
			paths = append(paths, s.Path)
			if s.From != filepath.Join(cwd, s.Path) {
				t.Errorf("%s is read from %s", s.Path, s.From)
			}
		}
		slices.Sort(paths)
		if err != nil || !slices.Equal(paths, want) {
			t.Errorf("%s: got %q, %v; want %q", name, paths, err, want)
		}
	}
	if got, _, err := Resolve(filepath.Join(cwd, "data", "sub"), []string{"."}); err != nil || len(got) != 1 || got[0].Path != "deep/b" {
		t.Errorf("the current folder: got %v, %v", got, err)
	}
	if got, _, err := Resolve("/", []string{filepath.Join(cwd, "data/sub")}); err != nil || len(got) != 1 || got[0].Path != cwd[1:]+"/data/sub/deep/b" {
		t.Errorf("an absolute path: got %v, %v", got, err)
	}
}

func TestT3FolderDoesNotEscape(t *testing.T) {
	tests := map[string]struct {
		to, want string
	}{
		"out":            {"../../secret", "d/link: a symbolic link that leads out of the folder"},
		"out, absolute":  {"/etc/passwd", "d/link: a symbolic link that leads out of the folder"},
		"missing target": {"nothing", "d/link: no such file"},
		"circle":         {"../d", "a symbolic link to a folder that it is in"},
		"itself":         {"link", "d/link"},
		"device":         {"/dev/null", "d/link"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cwd := folder(t, "top/d/a", "secret")
			link(t, test.to, filepath.Join(cwd, "top/d"), "link")
			_, _, err := Resolve(cwd, []string{"top"})
			if err == nil || !strings.Contains(err.Error(), "input folder top: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestURLs(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	tests := map[string]struct {
		line  string
		want  filetransfer.Download
		wrong string
	}{
		"bare":       {line: "https://h/x/d.gz", want: filetransfer.Download{URL: "https://h/x/d.gz", Path: "d.gz"}},
		"query":      {line: "http://h/d?x=1", want: filetransfer.Download{URL: "http://h/d?x=1", Path: "d"}},
		"escaped":    {line: "http://h/a%20b", want: filetransfer.Download{URL: "http://h/a%20b", Path: "a b"}},
		"digest":     {line: "http://h/d sha256:" + digest, want: filetransfer.Download{URL: "http://h/d", Path: "d", Digest: digest}},
		"path":       {line: "http://h/ as in/a b", want: filetransfer.Download{URL: "http://h/", Path: "in/a b"}},
		"both":       {line: "HTTP://h/d  sha256:" + digest + " as  e", want: filetransfer.Download{URL: "HTTP://h/d", Path: "e", Digest: digest}},
		"no name":    {line: "http://h/x/", wrong: "names no file"},
		"T3 path":    {line: "http://h/x as ../x", wrong: "not relative and clean"},
		"T3 escaped": {line: "http://h/%2e%2e%2f", wrong: "names no file"},
		"digest bad": {line: "http://h/x sha256:0a", wrong: "want 64 lower-case"},
		"words":      {line: "http://h/x md5:0a", wrong: "want URL [sha256:DIGEST] [as PATH]"},
		"no host":    {line: "http:///x", wrong: "want an http or https URL"},
		"no URL":     {line: "http://h\x7f/x", wrong: "invalid control character"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, got, err := Resolve(t.TempDir(), []string{test.line})
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("got %v, want %q", err, test.wrong)
				}
				return
			}
			if err != nil || len(got) != 1 || got[0] != test.want {
				t.Errorf("got %+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}

func TestFileAndURLForOnePathAreRefused(t *testing.T) {
	_, _, err := Resolve(folder(t, "d"), []string{"d", "http://h/d"})
	if err == nil || !strings.Contains(err.Error(), "both be staged as d") {
		t.Errorf("got %v, want a refusal", err)
	}
	if _, got, err := Resolve(t.TempDir(), []string{"http://h/d", "http://h/d"}); err != nil || len(got) != 1 {
		t.Errorf("the same URL twice: got %v, %v", got, err)
	}
}

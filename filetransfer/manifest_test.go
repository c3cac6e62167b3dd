package filetransfer

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestT3ManifestRefusesPathsThatLeaveTheFolder(t *testing.T) {
	long := strings.Repeat("a", maxNameBytes)
	tests := []struct {
		name  string
		paths []string
		ok    bool
	}{
		{"no path", nil, true},
		{"plain", []string{"a", "b/c", "b/d"}, true},
		{"folder before its name's extensions", []string{"a/b", "a.txt", "a0"}, true},
		{"dots in a name", []string{"...", "..a", "a..b"}, true},
		{"longest name", []string{long}, true},
		{"absolute", []string{"/etc/passwd"}, false},
		{"parent", []string{"../x"}, false},
		{"parent inside", []string{"a/../../x"}, false},
		{"unclean", []string{"a//b"}, false},
		{"trailing slash", []string{"a/"}, false},
		{"dot", []string{"."}, false},
		{"empty", []string{""}, false},
		{"newline", []string{"a\nb"}, false},
		{"zero byte", []string{"a\x00b"}, false},
		{"not UTF-8", []string{"a\xff"}, false},
		{"path twice", []string{"a", "a"}, false},
		{"file and folder", []string{"a", "a/b"}, false},
		{"out of order", []string{"b", "a"}, false},
		{"name too long", []string{long + "a"}, false},
		{"path too long", []string{strings.Repeat("a/", maxPathBytes/2) + "a"}, false},
		{"too deep", []string{strings.Repeat("a/", MaxPathDepth) + "a"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m Manifest
			for _, p := range tt.paths {
				m = append(m, Entry{Path: p})
			}
			if err := m.Validate(); (err == nil) != tt.ok {
				t.Errorf("%q: got error %v, want ok %v", tt.paths, err, tt.ok)
			}
		})
	}
}

func TestManifestRefusesIrregularFiles(t *testing.T) {
	tests := map[string]Manifest{
		"negative size":        {{Path: "a", Size: -1}},
		"huge size":            {{Path: "a", Size: maxFileBytes + 1}},
		"setuid":               {{Path: "a", Mode: fs.ModeSetuid | 0o755}},
		"symbolic link":        {{Path: "a", Mode: fs.ModeSymlink | 0o777}},
		"content of two sizes": {{Path: "a", Size: 1}, {Path: "b", Size: 2}},
	}
	for name, m := range tests {
		if m.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// For any sorting and nesting of paths, comparing neighbours in walk order finds every file that is also
// a folder.
func TestT3FileThatIsAlsoAFolderIsRefused(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 3_000 {
		var paths []string
		for range 2 + rng.IntN(5) {
			var p []byte
			for range 1 + rng.IntN(5) {
				p = append(p, "ab!/0"[rng.IntN(5)])
			}
			if s := string(p); validPath(s) == nil && !slices.Contains(paths, s) {
				paths = append(paths, s)
			}
		}
		want := true
		for _, a := range paths {
			for _, b := range paths {
				want = want && !strings.HasPrefix(b, a+"/")
			}
		}
		slices.SortFunc(paths, comparePaths)
		var m Manifest
		for _, p := range paths {
			m = append(m, Entry{Path: p})
		}
		if err := m.Validate(); (err == nil) != want {
			t.Fatalf("%q: got error %v, want ok %v", paths, err, want)
		}
	}
}

func TestManifestRoundTrip(t *testing.T) {
	m := Manifest{
		{Path: "bin/prog", Size: 7, Mode: 0o755, Digest: DigestOf([]byte("program"))},
		{Path: "in.txt", Size: 0, Mode: 0, Digest: DigestOf(nil)},
		{Path: "in2.txt", Size: 0, Mode: 0o600, Digest: DigestOf(nil)},
		{Path: "large", Size: pieceSize + 1, Mode: 0o600, Digest: Digest{1}, Pieces: make([]byte, chainBytes)},
	}
	b, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got, err := UnmarshalManifest(b)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Fatalf("got %v, %v; want %v", got, err, m)
	}
	if wants := m.Wants(); len(wants) != 3 {
		t.Errorf("%d contents, want 3 without duplicates", len(wants))
	}
}

func TestUnmarshalBoundsTheCountBeforeDecoding(t *testing.T) {
	empty := bytes.Repeat([]byte{0x0a, 0x00}, MaxEntries+1)
	if _, err := UnmarshalManifest(empty); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a manifest with too many entries: got %v", err)
	}
}

func FuzzUnmarshalManifest(f *testing.F) {
	b, _ := Manifest{{Path: "a/b", Size: 3, Mode: 0o644}, {Path: "c"}}.Marshal()
	f.Add(b)
	f.Add([]byte{})
	f.Add([]byte{0x0a, 0x00})
	f.Add([]byte{0x0a, 0x03, 0x0a, 0x01, '/'})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := UnmarshalManifest(b)
		if err != nil {
			return
		}
		again, err := m.Marshal()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x decodes to %v, which encodes to %x, %v", b, m, again, err)
		}
	})
}

func FuzzValidPath(f *testing.F) {
	for _, p := range []string{"a", "a/b", "/a", "..", "a/../b", "a\x00", "."} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if validPath(p) != nil {
			return
		}
		for name := range strings.SplitSeq(p, "/") {
			if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "\x00\n\r") {
				t.Fatalf("%q is valid", p)
			}
		}
	})
}

func FuzzParseDigest(f *testing.F) {
	f.Add(DigestOf(nil).String())
	f.Add(strings.ToUpper(DigestOf(nil).String()))
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := ParseDigest(s); err == nil && d.String() != s {
			t.Fatalf("%q parsed as %s", s, d)
		}
	})
}

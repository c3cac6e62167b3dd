package submit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

func TestHarmlessName(t *testing.T) {
	cases := map[string]string{
		"a.out": "a.out", "heat-1.png": "heat-1.png", "naïve": "naïve", "100%": "100%",
		"--help": "%2D-help", "gnp.\u202eexe": "gnp.%E2%80%AEexe", "a\u200bb": "a%E2%80%8Bb", "a\x1b[2J": "a%1B[2J",
		"a\u2028b": "a%E2%80%A8b", `..\x`: "..%5Cx", "con": "%63on", "NUL.txt": "%4EUL.txt", "com1": "%63om1",
		"LPT³.log": "%4CPT³.log", "conout$": "%63onout$", "com0": "com0", "com12": "com12",
		"console": "console", "com": "com", "%2Dx": "%252Dx",
	}
	for name, want := range cases {
		if got := sanitizeName(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestDestination(t *testing.T) {
	cases := []struct{ name, patterns, files, folder string }{
		{"a named file", "heat.png", "heat.png", "."},
		{"a named file in a folder", "out/heat.png", "out/heat.png", "."},
		{"a pattern", "*.png", "heat.png", "results-0123abcd"},
		{"a folder", "out", "out/x", "results-0123abcd"},
		{"a file of each rank", "sum.txt", "rank0/sum.txt rank1/sum.txt", "results-0123abcd"},
		{"two names", "a b", "a b", "results-0123abcd"},
		{"nothing", "*", "", "."},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var m filetransfer.Manifest
			for _, f := range strings.Fields(c.files) {
				m = append(m, filetransfer.Entry{Path: f, Mode: 0o755})
			}
			req := Request{Outputs: strings.Fields(c.patterns), OutputDir: "/here", NewFolder: true}
			dir, got := destination(req, "0123abcdef", []filetransfer.Manifest{m})
			if dir != filepath.Join("/here", c.folder) {
				t.Errorf("got %s, want %s", dir, c.folder)
			}
			for _, f := range got[0] {
				if f.Mode != 0o644 {
					t.Errorf("%s has mode %v, want no executable bit", f.Path, f.Mode)
				}
			}
			if req.NewFolder = false; len(m) > 0 {
				if dir, _ := destination(req, "0123abcdef", []filetransfer.Manifest{m}); dir != "/here" {
					t.Errorf("--output-dir: got %s", dir)
				}
			}
		})
	}
}

// TestOnlyRequestedFilesAreCollected: a volunteer offers hidden files for the pattern "*", and files
// with names that exist in the user's directory.
func TestOnlyRequestedFilesAreCollected(t *testing.T) {
	b := newBed(t, never, 1)
	b.play(func(p *part) {
		p.start()
		p.ends(proc(0, 0))
		p.offers(proc(0, 0), map[string]string{"Makefile": "evil", "--help": "1", "d/x": "2"})
	})
	req := b.request(1, 1)
	req.Outputs, req.OutputDir, req.NewFolder = []string{"*"}, t.TempDir(), true
	b.write(req.OutputDir+"/Makefile", "mine")
	b.run(req, nil).want(job.StatusOK, "")
	if got := folder(t, req.OutputDir); !strings.Contains(got, "Makefile=mine") {
		t.Errorf("the user's file was replaced: %q", got)
	}
	found, _ := filepath.Glob(req.OutputDir + "/results-*")
	if len(found) != 1 {
		t.Fatalf("got folders %q", found)
	}
	for _, name := range []string{"Makefile", "%2D-help", "d/x"} {
		if _, err := os.Stat(filepath.Join(found[0], name)); err != nil {
			t.Error(err)
		}
	}

	b.in(t).play(func(p *part) {
		p.start()
		p.ends(proc(0, 0))
		list := p.put(map[string]string{"d/.ssh/authorized_keys": "evil"})
		await(p, (*jobpb.ToPeer).GetCollect)
		p.say(collectedMessage(proc(0, 0), list, ""))
	})
	req.OutputDir = t.TempDir()
	b.run(req, nil).want(job.StatusLost, "which matches no pattern")
}

func TestExistingFilesAreNotReplaced(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/heat.png", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pattern   string
		newFolder bool
		want      string
	}{
		{"heat.png", true, "exists and is not replaced"}, {"link", true, "exists and is not replaced"},
		{"other.png", true, ""}, {"*.png", true, ""}, {"*.png", false, "not empty"},
	} {
		err := checkUnused(Request{Outputs: []string{c.pattern}, OutputDir: dir, NewFolder: c.newFolder})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}

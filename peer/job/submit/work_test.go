package submit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/p2pmpi/p2pmpi/filetransfer"
)

// TestStagedContentsAreKeptForResume: the program is removed with the process that has built it,
// and input files stay where they are. The next process may be started in another directory.
func TestStagedContentsAreKeptForResume(t *testing.T) {
	b := newBed(t, never)
	t.Chdir(t.TempDir())
	b.write("program", "what is run")
	b.write("data", "what it reads")
	req := b.healing()
	req.Programs[0].Path = "program"
	req.Inputs = []filetransfer.Source{{Path: "in/data", From: "data"}}
	k := b.keptAs(req, nil)
	if err := os.Remove("program"); err != nil {
		t.Fatal(err)
	}
	data, err := filepath.Abs("data")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	j, lacks := b.submitter.runAgain(k)
	if lacks != nil || !j.req.Heal {
		t.Fatalf("nothing is replaced: %v", lacks)
	}
	if j.spec.ID != k.kept.Job || len(j.envelope) == 0 || len(j.local) != 3 {
		t.Errorf("job %+v with %v", j.spec, j.local)
	}
	var sources []filetransfer.Source
	for d, s := range j.local {
		path := s.From
		sources = append(sources, filetransfer.Source{Path: d.String(), From: path})
		if text, err := os.ReadFile(path); err == nil && string(text) == "what it reads" && path != data {
			t.Errorf("the input is at %s", path)
		}
	}
	m, err := filetransfer.Build(t.Context(), sources)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range m {
		if e.Digest.String() != e.Path {
			t.Errorf("%s has the digest %s", e.Path, e.Digest)
		}
	}
}

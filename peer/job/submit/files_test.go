package submit

import (
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

func TestDifferingFilesAreReported(t *testing.T) {
	files := func(contents ...string) (m filetransfer.Manifest) {
		for i, c := range contents {
			m = append(m, filetransfer.Entry{Path: string(rune('a' + i)), Digest: filetransfer.DigestOf([]byte(c))})
		}
		return m
	}
	tests := []struct {
		name string
		a, b filetransfer.Manifest
		file string
	}{
		{"none", nil, nil, ""},
		{"the same", files("1", "2"), files("1", "2"), ""},
		{"another content", files("1", "2"), files("1", "3"), "b"},
		{"one less", files("1", "2"), files("1"), "b"},
		{"one more", files("1"), files("1", "2"), "b"},
		{"another name", files("1", "2")[1:], files("1", "2")[:1], "b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if file := unlikeFiles(tt.a, tt.b); file != tt.file {
				t.Errorf("got %q, want %q", file, tt.file)
			}
		})
	}
}

// TestFilesOfDivergedReplicas: all replicas of a rank have ended, and each has written a file
// with a text of its own.
func TestFilesOfDivergedReplicas(t *testing.T) {
	tests := []struct {
		name, texts string // texts has a word for each replica
		warn        bool
		status      int
		collected   []string // any of these
		message     string
		told        string
	}{
		{"alike", "a a", false, job.StatusOK, []string{"a"}, "", ""},
		{"two differ", "a b", false, job.StatusDiverged, []string{"a", "b"}, "the replicas of rank 0 have written different files", ""},
		{"two differ, which is tolerated", "a b", true, job.StatusOK, []string{"a", "b"}, "", `collected: "a.out" differs`},
		{"one of three", "a b a", false, job.StatusOK, []string{"a"}, "", "rank 0 replica 1"},
		{"the first of three", "b a a", false, job.StatusOK, []string{"a"}, "", "rank 0 replica 0"},
		{"three differ", "a b c", false, job.StatusDiverged, []string{"a", "b", "c"}, "have written different files", ""},
	}
	b := newBed(t, never, 1, 1, 1)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			texts := strings.Fields(tt.texts)
			b.in(t).play(func(p *part) {
				p.start()
				q := p.processes[0]
				p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Account{Account: &jobpb.Account{Process: jobpb.FromProcess(q), Summed: true}}})
				p.ends(q)
				files := p.put(map[string]string{"a.out": texts[q.Replica]})
				await(p, (*jobpb.ToPeer).GetCollect)
				p.untilAll(view.Finished) // otherwise no replica would be asked for its file list
				p.say(collectedMessage(q, files, ""))
			})
			req := b.request(1, len(texts))
			req.Outputs, req.OutputDir, req.OnDivergence = []string{"*.out"}, t.TempDir(), Stop
			if tt.warn {
				req.OnDivergence = Warn
			}
			o := b.run(req, nil)
			o.want(tt.status, tt.message)
			o.told(tt.told)
			if got := folder(t, req.OutputDir); !slices.Contains(tt.collected, strings.TrimPrefix(got, "a.out=")) {
				t.Errorf("collected %q, want one of %q", got, tt.collected)
			}
		})
	}
	b.in(t)
}

func TestMajorityOfFiles(t *testing.T) {
	tests := []struct {
		texts string // a word for each replica
		most  int
		ok    bool
	}{
		{"a", 0, true}, {"a a", 0, true}, {"a b", 0, false}, {"a b a", 0, true}, {"b a a", 1, true},
		{"a b c", 0, false}, {"a b a b", 0, false}, {"b a c a a", 1, true},
	}
	for _, tt := range tests {
		var lists []fileList
		for _, text := range strings.Fields(tt.texts) {
			lists = append(lists, fileList{files: filetransfer.Manifest{{Path: "f", Digest: filetransfer.DigestOf([]byte(text))}}})
		}
		if most, ok := mostFiles(lists); most != tt.most || ok != tt.ok {
			t.Errorf("%s: got %d, %v; want %d, %v", tt.texts, most, ok, tt.most, tt.ok)
		}
	}
}

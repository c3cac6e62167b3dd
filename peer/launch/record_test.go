package launch

import (
	"path/filepath"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/owner/journal"
)

// TestO3JournalContainsOnlyJobsThatRan checks that the journal contains only jobs that have run. Otherwise an
// admitted submitter could fill it with jobs that never begin.
func TestO3JournalContainsOnlyJobsThatRan(t *testing.T) {
	for name, runs := range map[string]bool{"runs": true, "never runs": false} {
		t.Run(name, func(t *testing.T) {
			j := newTestJob(t, 1, 1, nil, "print", "line", "1", "0")
			path := filepath.Join(t.TempDir(), "journal")
			kept, err := journal.Open(path, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			defer kept.Close()
			j.peers[0].launch.config.Journal = kept
			want := 0
			if runs {
				j.start()
				j.links[0].exited(view.Process{})
				want = 1
			} else {
				j.prepare()
			}
			j.stop()
			past, err := journal.Read(path)
			if err != nil || len(past) != want {
				t.Fatalf("got %+v, %v; want %d entries", past, err, want)
			}
			if runs && (past[0].Job != j.spec.ID || past[0].Until.IsZero() || past[0].Output == 0) {
				t.Errorf("got %+v", past[0])
			}
		})
	}
}

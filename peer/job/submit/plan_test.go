package submit

import (
	"context"
	"os"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// TestDryRunReportsPlacement: slots are held, reported and released.
func TestDryRunReportsPlacement(t *testing.T) {
	b := newBed(t, never, 2, 2)
	b.play(func(*part) { t.Error("a job that is only tried was staged") })
	req := b.request(2, 2)
	req.DryRun = true
	o := b.run(req, nil)
	o.want(job.StatusOK, "")
	o.told("the job would start: 4 processes on 2 peers")
	var planned []Planned
	for _, e := range o.events {
		planned = append(planned, e.Planned...)
	}
	if len(planned) != 2 || len(planned[0].Processes)+len(planned[1].Processes) != 4 || len(planned[0].Domain.Addresses) == 0 {
		t.Errorf("planned %+v", planned)
	}
	req.N = 5
	req.Wait = 0
	o = b.run(req, nil)
	o.want(job.StatusShortage, "found 4 of the 10 slots needed")
}

// TestDataStrategiesPreferCachedContents: a peer that has the program cached runs the job, however
// far away it is.
func TestDataStrategiesPreferCachedContents(t *testing.T) {
	b := newBed(t, never, 1, 1, 1)
	req := b.request(1, 1)
	req.DryRun, req.Strategy = true, "dataspread"
	has := b.peers[1]
	stop := has.files.Tell(func(id p2ppeer.ID) bool { return true })
	defer stop()
	content, err := os.ReadFile(req.Programs[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := has.files.Store().Put(t.Context(), "before", content); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		o := b.run(req, nil)
		o.want(job.StatusOK, "")
		for _, e := range o.events {
			for _, p := range e.Planned {
				if p.Peer != has.ID().String() {
					t.Errorf("planned at %s, want the peer that has the program, %s", p.Peer, has.ID())
				}
			}
		}
	}
}

// TestUserIsWarnedOfSharedFailureDomains: the user is warned before the job is staged, and in a
// dry run. The plan names the machine of each peer.
func TestUserIsWarnedOfSharedFailureDomains(t *testing.T) {
	const warning = "one failure may stop all replicas of a rank: rank 0 is on machines of one owner (alice)"
	b := newBed(t, never, 1, 1).launching()
	b.peers[0].standsOn("one", 1)
	b.peers[1].standsOn("another", 1)
	b.submitter.cfg.Owner = func(p2ppeer.ID) string { return "alice" }
	req := b.request(1, 2)
	req.DryRun = true
	o := b.run(req, nil)
	o.want(job.StatusOK, "")
	o.told(warning)
	for _, e := range o.events {
		if len(e.Planned) == 2 && (e.Planned[0].Machine == "" || e.Planned[0].Machine == e.Planned[1].Machine) {
			t.Errorf("planned on machines %q and %q", e.Planned[0].Machine, e.Planned[1].Machine)
		}
	}
	req.DryRun = false
	warned := false
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o = b.runUntil(ctx, req, func(e Event) error {
		warned = warned || e.Kind == WarningEvent && e.Text == warning
		if e.Phase == Staging {
			if !warned {
				t.Error("the job is staged before the user is warned")
			}
			cancel()
		}
		return nil
	})
	if !warned {
		t.Errorf("the user was told %q", o.texts())
	}
}

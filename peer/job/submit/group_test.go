package submit

import (
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// suspects reports repeatedly that the submitter's peer has failed in the group of that generation.
// It stops at the next Join, which becomes p.joining.
func (p *part) suspects(generation uint32) {
	m := &jobpb.FromPeer{Body: &jobpb.FromPeer_Suspect{Suspect: &jobpb.Suspect{Peer: []byte(p.own.ID()), Generation: generation}}}
	heard, said := make(chan struct{}), make(chan struct{})
	go func() { // ends when heard is closed or the stream ends
		defer close(said)
		defer func() { _ = recover() }() // the stream has ended
		for {
			p.say(m)
			select {
			case <-time.After(50 * time.Millisecond):
			case <-heard:
				return
			}
		}
	}()
	defer func() {
		close(heard)
		<-said
	}()
	p.joining = await(p, (*jobpb.ToPeer).GetJoin)
}

// TestSubmitterFailedByItsPeersStartsANewDetectorGroup: the peers have failed the submitter, which
// is final in the old group. One peer reports that to the submitter, which starts a new group.
// Later reports about the old group do not count.
func TestSubmitterFailedByItsPeersStartsANewDetectorGroup(t *testing.T) {
	b := newBed(t, time.Second, 1, 1)
	b.play(func(p *part) {
		p.start()
		p.join()
		p.enter()
		if p.runs(proc(0, 0)) {
			p.suspects(0)
		} else {
			p.joining = await(p, (*jobpb.ToPeer).GetJoin)
		}
		if p.joining.Generation != 1 || len(p.joining.Group) != 3 || len(p.joining.Views) != 0 {
			p.Errorf("asked to join %v", p.joining)
		}
		p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Suspect{Suspect: &jobpb.Suspect{Peer: []byte(p.own.ID())}}})
		p.group.Close()
		p.join()
		p.ends(p.processes[0], "a\n")
	})
	o := b.run(b.request(1, 2), nil)
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\n")
	if strings.Contains(o.texts(), "failed") {
		t.Errorf("the user was told %q", o.texts())
	}
}

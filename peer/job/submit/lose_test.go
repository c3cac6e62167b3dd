package submit

import (
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// TestR7RankWithoutReplicaEndsTheJob checks the exit status and the message.
func TestR7RankWithoutReplicaEndsTheJob(t *testing.T) {
	b := newBed(t, never, 1, 1, 1, 1)
	all := func(e job.Exit) func(*part, view.Process) {
		return func(p *part, q view.Process) {
			if e.Initialized {
				p.initialized(q)
			}
			p.exits(q, e)
			if q.Replica > 0 {
				p.until(proc(1, 0), view.Failed)
			}
			p.closes(q, 0)
		}
	}
	cases := map[string]struct {
		rank1  func(*part, view.Process)
		status int
		says   string
	}{
		"its peers are lost": {func(p *part, _ view.Process) { p.vanish() }, job.StatusLost, "rank "},
		"own status":         {all(job.Exit{Code: 3, Initialized: true}), 3, "rank 1 exited with status 3"},
		"killed":             {all(job.Exit{Code: -1, Signal: "killed"}), job.StatusLost, "rank 1 lost all its replicas: replica 0 was killed by signal killed, replica 1 was killed"},
		"no Finalize":        {all(job.Exit{Initialized: true}), job.StatusLost, "replica 0 ended without calling Finalize"},
		"hung":               {all(job.Exit{Code: -1, Signal: "killed", Reason: "has not\nanswered"}), job.StatusLost, ": has not answered"},
		"a limit":            {all(job.Exit{Code: -1, Signal: "killed", Reason: "exceeded the limit of 512 MiB memory: used 513 MiB", Limit: "memory"}), job.StatusLost, ": exceeded the limit of 512 MiB memory: used 513 MiB, replica 1 was ended by its peer "},
		"Abort": {func(p *part, q view.Process) {
			p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Aborted{Aborted: &jobpb.Aborted{Process: jobpb.FromProcess(q), Code: 7, Reason: "no\x1b food"}}})
			p.closes(q, 0)
		}, 7, "rank 1 called Abort: no  food"},
		"never in Init, others wait there": {all(job.Exit{}), job.StatusLost, "rank 1 ended without calling mpj.Init, while rank 0 waits in it"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b.in(t).play(func(p *part) {
				p.start()
				for _, q := range p.processes {
					if q.Rank == 0 {
						p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Initialized{Initialized: &jobpb.Initialized{Process: jobpb.FromProcess(q)}}})
					}
				}
				for _, q := range p.processes {
					if q.Rank == 1 {
						c.rank1(p, q)
					}
				}
			})
			o := b.run(b.request(2, 2), nil)
			o.want(c.status, c.says)
			if helps := name == "its peers are lost" || name == "killed" || name == "hung" || name == "a limit"; helps != (o.Hint != "") {
				t.Errorf("hint %q", o.Hint)
			}
			named := 0
			for _, m := range b.peers {
				if strings.Contains(o.Message, "was ended by its peer "+short(m.ID())+": ") {
					named++
				}
			}
			if ended := name == "hung" || name == "a limit"; ended != (named == 2) {
				t.Errorf("%q names %d peers", o.Message, named)
			}
			if limited := name == "a limit"; limited != (o.Limit == "memory") || limited != strings.Contains(o.Hint, "--min-memory") {
				t.Errorf("limit %q, hint %q", o.Limit, o.Hint)
			}
		})
	}
	b.in(t)
}

// TestAllProcessesLeaveInitTogether: Begin is sent when the last live process has called mpj.Init.
// Failed processes are not waited for.
func TestAllProcessesLeaveInitTogether(t *testing.T) {
	b := newBed(t, never, 1, 1, 1)
	b.play(func(p *part) {
		p.start()
		q := p.processes[0]
		if q == proc(0, 0) {
			p.vanish()
		}
		p.enter()
		p.closes(q, 0)
		p.exits(q, wellEnded)
	})
	o := b.run(b.request(1, 3), nil)
	o.want(job.StatusOK, "")
	o.changesNameTheirSource()
}

// TestReportedSuspectIsOnlyProbed: the submitter itself questions a peer that another peer
// reports as failed, and the reported peer continues.
func TestReportedSuspectIsOnlyProbed(t *testing.T) {
	m, q := proc(0, 0), proc(0, 1)
	b := newBed(t, never, 1, 1)
	asked := make(chan struct{})
	accused := make(chan *member, 1)
	b.play(func(p *part) {
		p.start()
		if p.runs(m) {
			p.peer.SetStreamHandler(faultdetect.Protocol, func(s network.Stream) {
				close(asked) // with this period, gossip does not reach it
				s.Reset()
			})
			accused <- p.peer
			p.until(q, view.Finished)
			<-asked
			p.ends(m, "a\n")
			return
		}
		for _, id := range [][]byte{[]byte((<-accused).ID()), []byte(b.own.ID()), []byte("nonsense"), nil} {
			p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Suspect{Suspect: &jobpb.Suspect{Peer: id}}})
		}
		p.exits(q, job.Exit{})
	})
	o := b.run(b.request(1, 2), nil)
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\n")
	if strings.Contains(o.texts(), "failed") {
		t.Errorf("the user was told %q", o.texts())
	}
}

// TestF1SilentPeerFails: the peer keeps its streams open and sends no heartbeat.
func TestF1SilentPeerFails(t *testing.T) {
	skip.Long(t)
	m, q := proc(0, 0), proc(0, 1)
	b := newBed(t, 250*time.Millisecond, 1, 1)
	b.play(func(p *part) {
		p.start()
		if p.runs(m) {
			return
		}
		p.join()
		p.until(m, view.Failed)
		p.ends(q)
	})
	o := b.run(b.request(1, 2), nil)
	o.want(job.StatusOK, "")
	o.told("it has been silent for too long; replica 1 is its master now")
}

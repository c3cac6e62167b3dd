package job

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
)

// keptOn returns the keeper of a job of one rank, the replicas of which are on the peers of
// b in their order, and which has begun. Who follows it does not wait long.
func (b *bed) keptOn() *keeper {
	b.Helper()
	b.submitter.cfg.Jobs = filepath.Join(b.TempDir(), "jobs")
	b.submitter.waits.back, b.submitter.waits.tell = 100*time.Millisecond, 100*time.Millisecond
	req := b.request(1, max(len(b.peers), 2))
	req.Away = patience
	k, err := b.submitter.keep(newRun(b.submitter, req))
	if err != nil {
		b.Fatal(err)
	}
	for i, m := range b.peers {
		p := KeptPeer{Peer: m.ID(), Processes: []view.Process{proc(0, i)}}
		for _, a := range m.Addrs() {
			p.Addrs = append(p.Addrs, a.String())
		}
		k.kept.Peers = append(k.kept.Peers, p)
	}
	if err := k.writeBegin(&jobpb.Begin{}); err != nil {
		b.Fatal(err)
	}
	return k
}

// attach goes on with a kept job, each peer of which has a script for every time that it is
// asked to resume its part. One without is lost. As in play, a part obeys Stop.
func (b *bed) attach(k *keeper, scripts map[view.Process]func(*part)) *outcome {
	b.Helper()
	k.close()
	for i, m := range b.peers {
		q := k.kept.Peers[i].Processes[0]
		script, ok := scripts[q]
		if !ok {
			continue
		}
		m.SetStreamHandler(Protocol, func(s network.Stream) {
			b.stage.acting.Add(1)
			defer b.stage.acting.Done()
			p := &part{bed: b, peer: m, stream: s, in: pbio.NewDelimitedReader(s, jobpb.MaxMessage), processes: []view.Process{q}}
			defer p.leave()
			await(p, (*jobpb.ToPeer).GetResume)
			p.perform(script)
			if p.atStop != nil {
				p.atStop()
			}
			p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Stopped{Stopped: &jobpb.Stopped{}}})
			s.Close()
		})
	}
	b.Cleanup(b.stage.acting.Wait)
	return b.follow(func(emit func(Event) error) Result { return b.submitter.Attach(b.Context(), k.kept.Job, Showing(emit)) }, nil)
}

// back says that the part goes on, and what it has said so far.
func (p *part) back(said ...*jobpb.FromPeer) {
	p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Resumed{Resumed: &jobpb.Resumed{Said: uint64(len(said))}}})
	for _, m := range said {
		p.say(m)
	}
}

// agreedOn says that q has become something, in the view of this epoch.
func agreedOn(epoch uint64, q view.Process, to view.State) *jobpb.FromPeer {
	c := viewgroup.Change{Process: q, To: to}
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Agreed{Agreed: jobpb.FromChange(c, epoch)}}
}

func exitedMessage(q view.Process, e Exit) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Exited{Exited: &jobpb.Exited{
		Process: jobpb.FromProcess(q), Code: int32(e.Code), Initialized: e.Initialized, Finalized: e.Finalized,
	}}}
}

// asked waits until q is asked to become something.
func (p *part) asked(q view.Process, to view.State) {
	await(p, func(m *jobpb.ToPeer) *jobpb.Change {
		if c := m.GetPropose(); c != nil && c.Process.View() == q && view.State(c.To) == to {
			return c
		}
		return nil
	})
}

// TestR6AttachedDoesWithoutPeersThatAreLostWhenTheyHaveFinished: nothing of theirs can be
// failed by those who agree on views, for nothing runs there, but their output was theirs to
// give. One of them is lost before the job is gone on with, another one after that.
func TestR6AttachedDoesWithoutPeersThatAreLostWhenTheyHaveFinished(t *testing.T) {
	b := newBed(t, never, 1, 1, 1)
	gone := make(chan struct{})
	o := b.attach(b.keptOn(), map[view.Process]func(*part){
		proc(0, 1): func(p *part) {
			select {
			case <-gone:
				p.vanish()
			default:
			}
			p.back(exitedMessage(proc(0, 1), wellEnded))
			p.asked(proc(0, 0), view.Failed)
			close(gone)
			p.vanish()
		},
		proc(0, 2): func(p *part) {
			p.back(exitedMessage(proc(0, 2), wellEnded), agreedOn(2, proc(0, 0), view.Finished),
				agreedOn(3, proc(0, 1), view.Finished), agreedOn(4, proc(0, 2), view.Finished))
			for k := range 2 {
				p.asked(proc(0, k), view.Failed)
				p.say(agreedOn(uint64(5+k), proc(0, k), view.Failed))
			}
			p.writes(proc(0, 2), 0, "a\n")
			p.closes(proc(0, 2), 1)
		},
	})
	o.want(StatusOK, "")
	o.wrote(0, Stdout, "a\n")
}

// TestS4ResultThatNotAllHaveHeardOf: the process that had it was killed before it told the
// job's peers to stop. Some of them have gone.
func TestS4ResultThatNotAllHaveHeardOf(t *testing.T) {
	b := newBed(t, never, 1, 1, 1)
	k := b.keptOn()
	if err := k.writeResult(Result{Status: 5, Message: "as it was"}, nil); err != nil {
		t.Fatal(err)
	}
	stopped := false
	o := b.attach(k, map[view.Process]func(*part){
		proc(0, 0): func(p *part) {
			p.back()
			p.atStop = func() { stopped = true }
		},
		proc(0, 1): func(p *part) {
			p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Resumed{Resumed: &jobpb.Resumed{Error: "no such job here"}}})
			p.vanish()
		},
	})
	o.want(5, "as it was")
	if !stopped {
		t.Error("a peer was not told to stop")
	}
	if _, err := os.Stat(k.dir); err == nil {
		t.Error("it is still kept")
	}
}

// TestAttachedFailsNobodyWhoCameLater than the job began: such a process may be all that is
// left of its rank, though its peer is not known here.
func TestAttachedFailsNobodyWhoCameLater(t *testing.T) {
	b := newBed(t, never, 1, 1)
	o := b.attach(b.keptOn(), map[view.Process]func(*part){
		proc(0, 1): func(p *part) {
			p.back(agreedOn(2, proc(0, 0), view.Failed), agreedOn(3, proc(0, 2), view.Live))
			p.ends(proc(0, 1), "a\n")
			p.say(agreedOn(4, proc(0, 1), view.Finished))
			p.atStop = func() {
				for _, m := range p.kept {
					if c := m.GetPropose(); c.GetProcess().GetReplica() == 2 {
						t.Errorf("it asks for %v", c)
					}
				}
			}
		},
	})
	o.want(StatusOK, "")
	o.wrote(0, Stdout, "a\n")
	o.told("rank 0 replica 2 came later than the job began")
	if v := o.view(); v.State(proc(0, 2)) != view.Live {
		t.Errorf("last view %+v", v)
	}
}

// TestSubmitterThatIsReplacedLeavesTheJobAlone: it says no word that would end a part of it or
// fail a process, whether it is there when another process goes on with the job, or away.
func TestSubmitterThatIsReplacedLeavesTheJobAlone(t *testing.T) {
	t.Run("there", func(t *testing.T) {
		b := newBed(t, never, 1, 1)
		var entered sync.WaitGroup
		entered.Add(2)
		b.play(func(p *part) {
			p.start()
			p.enter()
			entered.Done()
			entered.Wait()
			if p.number == 0 {
				p.stream.ResetWithError(jobpb.Replaced)
				p.vanish()
			}
			p.leftAlone()
		})
		b.run(b.request(1, 2), nil).want(StatusLost, "another p2prun goes on with job ")
	})
	t.Run("away", func(t *testing.T) {
		b := newBed(t, never, 1, 1)
		k := b.keptOn()
		o := b.attach(k, map[view.Process]func(*part){
			proc(0, 0): func(p *part) {
				p.stream.ResetWithError(jobpb.Replaced)
				p.vanish()
			},
			proc(0, 1): func(p *part) {
				p.back()
				p.leftAlone()
			},
		})
		o.want(StatusLost, "another p2prun goes on with job ")
		if _, err := os.Stat(k.dir); err != nil {
			t.Errorf("it cannot be gone on with: %v", err)
		}
	})
}

// leftAlone ends the part when its stream ends, which must not be for good.
func (p *part) leftAlone() {
	for {
		m := &jobpb.ToPeer{}
		err := p.in.ReadMsg(m)
		if reset, ok := errors.AsType[*network.StreamError](err); ok && reset.Remote && reset.ErrorCode == jobpb.Left {
			p.Error("its part is over, it hears")
		}
		if err != nil {
			p.vanish()
		}
		if m.GetStop() != nil || m.GetView() != nil || m.GetPropose() != nil {
			p.Errorf("it hears %v", m)
		}
	}
}

package submit

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// keptOn returns the keeper of a job of one rank with r replicas, which has begun. The replicas run
// on the first peers of b. Each of the other peers runs a process that came later. The timeouts for
// a resumed job are short.
func (b *bed) keptOn(r int) *keeper { return b.keptAs(b.request(1, r), b.peers) }

// keptAs is like keptOn for the given request and peers.
func (b *bed) keptAs(req Request, peers []*member) *keeper {
	b.Helper()
	b.submitter.cfg.Jobs = filepath.Join(b.TempDir(), "jobs")
	b.submitter.waits.reconnect, b.submitter.waits.notify = 100*time.Millisecond, 100*time.Millisecond
	req.Away = eventTimeout
	j := newRun(b.submitter, req)
	var err error
	if j.keeper, err = b.submitter.keep(j); err != nil {
		b.Fatal(err)
	}
	k := j.keeper
	j.events = Showing(func(Event) error { return nil })
	defer j.events.finish()
	if err := j.describe(b.Context()); err != nil {
		b.Fatal(err)
	}
	for i, m := range peers {
		p := KeptPeer{Peer: m.ID(), Processes: []view.Process{proc(0, i)}, Number: i + 1}
		if i >= req.R {
			p.Keys = [][]byte{make([]byte, proclink.KeySize)}
		}
		for _, a := range m.Addrs() {
			p.Addrs = append(p.Addrs, a.String())
		}
		k.kept.Peers = append(k.kept.Peers, p)
	}
	if err := k.writeBegin(&jobpb.Begin{Places: []*jobpb.Place{{}}}); err != nil {
		b.Fatal(err)
	}
	return k
}

// attach resumes a kept job. Each peer follows the script of its process whenever it is asked to
// resume its part. A peer without a script is lost. As in play, a part obeys Stop. All peers are members of the
// view group, including those whose part has ended.
func (b *bed) attach(k *keeper, scripts map[view.Process]func(*part)) *outcome {
	b.Helper()
	return b.attachAnd(nil, k, scripts)
}

// attachAnd is like attach; watch, if not nil, receives every event.
func (b *bed) attachAnd(watch func(Event) error, k *keeper, scripts map[view.Process]func(*part)) *outcome {
	b.Helper()
	k.close()
	b.stage.begin(b)
	if b.agreement == nil || b.agreement.k != k {
		b.agrees(k)
	}
	for _, known := range k.kept.Peers {
		m, q := b.peer(known.Peer.String()), known.Processes[0]
		script, ok := scripts[q]
		if !ok {
			continue
		}
		m.SetStreamHandler(Protocol, func(s network.Stream) {
			if !b.stage.enter(s) {
				return
			}
			defer b.stage.acting.Done()
			p := &part{bed: b, peer: m, stream: s, in: pbio.NewDelimitedReader(s, jobpb.MaxMessage), processes: []view.Process{q}, begun: true, initial: q.Replica < k.kept.Request.R}
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
	return b.follow(func(emit func(Event) error) job.Result {
		return b.submitter.Attach(b.Context(), k.kept.Job, Showing(emit))
	}, watch)
}

// back reports that the part continues, and repeats its earlier messages. The first one is that its
// process has called mpj.Init, if the process was there when the job began.
func (p *part) back(said ...*jobpb.FromPeer) {
	if p.initial {
		said = append([]*jobpb.FromPeer{initializedMessage(p.processes[0])}, said...)
	}
	p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Resumed{Resumed: &jobpb.Resumed{Said: uint64(len(said))}}})
	for _, m := range said {
		p.say(m)
	}
}

// says answers that the part does not continue, and closes the stream as a peer does. A reset could
// overtake the answer.
func (p *part) says(problem string) {
	p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Resumed{Resumed: &jobpb.Resumed{Error: problem}}})
	p.stream.CloseWrite()
}

// ended reports that the part has ended, and closes lost when the submitter has received that.
func (p *part) ended(lost chan<- struct{}) {
	p.says("no such job here")
	p.in.ReadMsg(&jobpb.ToPeer{}) // until the submitter gives it up
	close(lost)
	p.vanish()
}

func exitedMessage(q view.Process, e job.Exit) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Exited{Exited: &jobpb.Exited{
		Process: jobpb.FromProcess(q), Code: int32(e.Code), Initialized: e.Initialized, Finalized: e.Finalized,
	}}}
}

// TestR6ResumedJobLosesPeersOfFinishedReplicas: two replicas have finished, and
// their peers are lost before the output arrived. The other peers cannot detect that, since nothing
// runs there. One peer is lost before the job is resumed, the other one after that.
func TestR6ResumedJobLosesPeersOfFinishedReplicas(t *testing.T) {
	skip.Long(t)
	b := newBed(t, never, 1, 1, 1)
	k := b.keptOn(3)
	b.agrees(k, change(proc(0, 0), view.Finished), change(proc(0, 1), view.Finished), change(proc(0, 2), view.Finished))
	gone := make(chan struct{})
	o := b.attach(k, map[view.Process]func(*part){
		proc(0, 1): func(p *part) {
			select {
			case <-gone:
				p.vanish()
			default:
			}
			p.back(exitedMessage(proc(0, 1), wellEnded), accountMessage(proc(0, 1)))
			p.agreed(proc(0, 0), view.Failed)
			close(gone)
			p.vanish()
		},
		proc(0, 2): func(p *part) {
			p.back(exitedMessage(proc(0, 2), wellEnded), accountMessage(proc(0, 2)))
			p.agreed(proc(0, 0), view.Failed)
			p.agreed(proc(0, 1), view.Failed)
			p.writes(proc(0, 2), 0, "a\n")
			p.closes(proc(0, 2), 1)
		},
	})
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\n")
}

// TestS4ResumeAfterAPartlyAnnouncedResult: the submitter's process was killed when the job had a
// result, before it told the job's peers to stop. Some peers have already gone.
func TestS4ResumeAfterAPartlyAnnouncedResult(t *testing.T) {
	skip.Long(t)
	b := newBed(t, never, 1, 1, 1)
	k := b.keptOn(3)
	b.submitter.waits.notify = 3 * time.Second // covers the peer that does not answer; the others answer in time
	if err := k.writeResult(job.Result{Status: 5, Message: "as it was"}, nil); err != nil {
		t.Fatal(err)
	}
	stopped := false
	o := b.attach(k, map[view.Process]func(*part){
		proc(0, 0): func(p *part) {
			p.back()
			p.atStop = func() { stopped = true }
		},
		proc(0, 1): func(p *part) {
			p.says("no such job here")
			p.vanish()
		},
	})
	o.want(5, "as it was")
	if !stopped {
		t.Error("a peer was not told to stop")
	}
	if _, err := os.Stat(k.dir); err == nil {
		t.Error("the job is still kept")
	}
}

// TestResumedSubmitterDoesNotFailUnrecordedProcesses: a process that is not recorded may be the only
// one left of its rank.
func TestResumedSubmitterDoesNotFailUnrecordedProcesses(t *testing.T) {
	skip.Long(t)
	b := newBed(t, never, 1, 1)
	k := b.keptOn(2)
	b.agrees(k, change(proc(0, 0), view.Failed), change(proc(0, 2), view.Live))
	o := b.attach(k, map[view.Process]func(*part){
		proc(0, 1): func(p *part) {
			p.back()
			p.ends(proc(0, 1), "a\n")
		},
	})
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\n")
	o.told("rank 0 replica 2 joined after the start of the job")
	if v := o.view(); v.State(proc(0, 2)) != view.Live {
		t.Errorf("last view %+v", v)
	}
}

// TestResumedSubmitterAcceptsLaterProcesses: processes that joined after the job began are all that
// is left of their rank. Their messages arrive before the changes are applied, and they are let in
// after that.
func TestResumedSubmitterAcceptsLaterProcesses(t *testing.T) {
	skip.Long(t)
	b := newBed(t, never, 1, 1, 1)
	late := proc(0, 2)
	k := b.keptOn(2)
	b.agrees(k, change(proc(0, 0), view.Failed), change(late, view.Live))
	lost := make(chan struct{})
	o := b.attach(k, map[view.Process]func(*part){
		proc(0, 1): func(p *part) { p.ended(lost) },
		late: func(p *part) {
			<-lost
			p.back(initializedMessage(late), healedMessage(late), exitedMessage(late, wellEnded), accountMessage(late))
			await(p, (*jobpb.ToPeer).GetBegin)
			p.agreed(late, view.Finished)
			p.writes(late, 0, "a\n")
			p.closes(late, 1)
		},
	})
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\n")
}

// TestResumedSubmitterAsksAPeerWithTwoPartsOnce: the first part of a peer has ended, and its second
// part is asked once to resume. A second request would look like that of another submitter process.
func TestResumedSubmitterAsksAPeerWithTwoPartsOnce(t *testing.T) {
	skip.Long(t)
	b := newBed(t, never, 1, 1)
	k := b.keptOn(2)
	again := k.kept.Peers[1]
	again.Processes, again.Number = []view.Process{proc(0, 2)}, 3
	k.kept.Peers = append(k.kept.Peers, again)
	if err := k.write(); err != nil {
		t.Fatal(err)
	}
	b.agrees(k, change(proc(0, 1), view.Failed))
	var asked atomic.Int32
	o := b.attach(k, map[view.Process]func(*part){
		proc(0, 0): func(p *part) {
			p.back()
			p.ends(proc(0, 0), "a\n")
		},
		proc(0, 1): func(p *part) {
			asked.Add(1)
			p.initial = false // its part is that of the second process
			p.back()
		},
	})
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\n")
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times to go on", n)
	}
}

// TestResumedSubmitterDoesNotWaitForUnjoinedProcesses: a new process was recorded, and the submitter
// was killed before it requested the join. The process waits in mpj.Init, or has ended.
func TestResumedSubmitterDoesNotWaitForUnjoinedProcesses(t *testing.T) {
	skip.Long(t)
	for name, late := range map[string]func(*part){
		"gone":      nil,
		"ended":     func(p *part) { p.says("no such job here") },
		"it waits":  func(p *part) { p.back(initializedMessage(proc(0, 2))) },
		"it breaks": func(p *part) { p.back(initializedMessage(proc(0, 2))); p.vanish() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, never, 1, 1, 1)
			scripts := make(map[view.Process]func(*part))
			for i := range 2 {
				scripts[proc(0, i)] = func(p *part) {
					p.back(exitedMessage(proc(0, i), wellEnded), accountMessage(proc(0, i)))
					p.writes(proc(0, i), 0, "a\n")
					p.closes(proc(0, i), 1)
				}
			}
			if late != nil {
				scripts[proc(0, 2)] = func(p *part) {
					late(p)
					p.atStop = func() {
						for _, m := range p.kept {
							if m.GetBegin() != nil {
								t.Error("the unjoined process was admitted")
							}
						}
					}
				}
			}
			o := b.attach(b.keptOn(2), scripts)
			o.want(job.StatusOK, "")
			o.wrote(0, job.Stdout, "a\n")
		})
	}
}

// TestResumedSubmitterRepeatsRequests: the view group agrees on requests that were made before this
// process was in touch with it.
func TestResumedSubmitterRepeatsRequests(t *testing.T) {
	b := newBed(t, never, 1, 1)
	k := b.keptOn(2)
	b.agrees(k, change(proc(0, 0), view.Finished), change(proc(0, 1), view.Finished))
	lost := make(chan struct{})
	o := b.attach(k, map[view.Process]func(*part){
		proc(0, 0): func(p *part) { p.ended(lost) },
		proc(0, 1): func(p *part) {
			<-lost
			p.back(exitedMessage(proc(0, 1), wellEnded), accountMessage(proc(0, 1)))
			p.agreed(proc(0, 0), view.Failed)
			p.writes(proc(0, 1), 0, "a\n")
			p.closes(proc(0, 1), 1)
		},
	})
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\n")
	o.changesNameTheirSource()
}

// TestResumedSubmitterFindsAPeerAtANewAddress: a peer no longer has its recorded address, but
// another peer knows it.
func TestResumedSubmitterFindsAPeerAtANewAddress(t *testing.T) {
	skip.Long(t)
	b := newBed(t, never, 1, 1)
	moved, other := b.peers[0], b.peers[1]
	for _, m := range b.peers {
		m.introduces(t)
	}
	if err := moved.Connect(t.Context(), p2ppeer.AddrInfo{ID: other.ID(), Addrs: other.Addrs()}); err != nil {
		t.Fatal(err)
	}
	b.submitter.waits.locate, b.submitter.waits.reconnect = 10*time.Millisecond, eventTimeout
	k := b.keptOn(2)
	b.submitter.waits.reconnect = eventTimeout
	k.kept.Peers[0].Addrs = []string{"/ip4/127.0.0.1/tcp/1"}
	if err := k.write(); err != nil {
		t.Fatal(err)
	}
	b.agrees(k)
	if err := b.own.Network().ClosePeer(moved.ID()); err != nil {
		t.Fatal(err)
	}
	b.own.Peerstore().ClearAddrs(moved.ID())
	found := make(chan struct{})
	o := b.attach(k, map[view.Process]func(*part){
		proc(0, 0): func(p *part) {
			close(found)
			p.back(exitedMessage(proc(0, 0), wellEnded), accountMessage(proc(0, 0)))
			p.writes(proc(0, 0), 0, "a\n")
			p.closes(proc(0, 0), 1)
		},
		proc(0, 1): func(p *part) {
			<-found
			p.back()
			p.exits(proc(0, 1), wellEnded)
		},
	})
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\n")
}

// TestEachResumptionHasANumberOfItsOwn: a number in the view group is recorded before it is used, and
// no process of the submitter uses that of another one, even if it is killed at once. The generations of
// their detector groups differ too.
func TestEachResumptionHasANumberOfItsOwn(t *testing.T) {
	b := newBed(t, never, 1, 1)
	k := b.keptOn(2)
	for want := 3; want < 6; want++ {
		j, _ := b.submitter.runAgain(k)
		j.events = Showing(func(Event) error { return nil })
		e := newResumption(j, make([][2]uint64, 1), newTranscripts(1), nil)
		if r := joinAgain(e); r != nil {
			t.Fatalf("result %+v", r)
		}
		kept, err := readKept(k.dir)
		if n := len(kept.Numbers); err != nil || n != want-2 || kept.Numbers[n-1] != want || e.views.self() != want {
			t.Errorf("kept the numbers %v (%v), used %d, want %d", kept.Numbers, err, e.views.self(), want)
		}
		if before := firstGeneration(want - 3); e.detection.generation <= before {
			t.Errorf("generation %d after %d", e.detection.generation, before)
		}
		e.close()
		j.events.finish()
	}
	k.close()
}

// TestResumedJobWarnsOfPeersOutOfTouch: the user learns once which peers the resumed job waits for, and until when.
func TestResumedJobWarnsOfPeersOutOfTouch(t *testing.T) {
	skip.Long(t)
	b := newBed(t, never, 1, 1)
	k := b.keptOn(2)
	b.submitter.waits.contact, b.submitter.waits.reconnect = 10*time.Millisecond, eventTimeout
	warned := make(chan struct{})
	watch := func(e Event) error {
		if strings.Contains(e.Text, "(--away)") {
			close(warned)
		}
		return nil
	}
	o := b.attachAnd(watch, k, map[view.Process]func(*part){
		proc(0, 0): func(p *part) {
			p.back(exitedMessage(proc(0, 0), wellEnded), accountMessage(proc(0, 0)))
			p.writes(proc(0, 0), 0, "a\n")
			p.closes(proc(0, 0), 1)
		},
		proc(0, 1): func(p *part) {
			<-warned
			p.back(exitedMessage(proc(0, 1), wellEnded), accountMessage(proc(0, 1)))
		},
	})
	o.want(job.StatusOK, "")
	o.told(short(b.peers[1].ID())) // the other peer may not have answered yet either
	o.told("; waiting until ")
}

// TestOutOfTouchWarningNamesTheCause checks what the warning of a resumed job says of its peers.
func TestOutOfTouchWarningNamesTheCause(t *testing.T) {
	for silent, want := range []string{"the job's peers answer, but", "peers of the job do not answer: ", "none of the job's peers answers: "} {
		b := newBed(t, never, 1, 1)
		e := b.partedOn()
		for i, l := range e.peers.links {
			l.session.disconnected = i < silent*len(e.peers.links)/2
		}
		told := ""
		e.j.events = Showing(func(e Event) error {
			told += e.Text
			return nil
		})
		e.warnOutOfTouch()
		e.j.events.finish()
		if !strings.Contains(told, want) {
			t.Errorf("%d of 2 parts are silent: %q", silent, told)
		}
	}
}

// TestResumedJobThatHasEndedIsReported: nothing of the job is left at its peers.
func TestResumedJobThatHasEndedIsReported(t *testing.T) {
	b := newBed(t, never, 1, 1)
	ended := func(p *part) { p.ended(make(chan struct{})) }
	o := b.attach(b.keptOn(2), map[view.Process]func(*part){proc(0, 0): ended, proc(0, 1): ended})
	o.want(job.StatusLost, "nothing of job ")
}

// TestResumedJobEndsWithoutAMajority: a replica of each rank has finished, and most members of the view
// group have left after that, the leader among them. The only peer that is left has the log and the output.
func TestResumedJobEndsWithoutAMajority(t *testing.T) {
	skip.Long(t)
	b := newBed(t, never, 1, 1, 1, 1)
	k := b.keptOn(4)
	b.agrees(k)
	a := b.agreement
	last := (slices.Index(b.peers, a.leader()) + 1) % len(b.peers)
	q, id := proc(0, last), b.peers[last].ID()
	a.groups[id].Propose(change(q, view.Finished))
	a.await("its end", func() bool { return a.views[id].State(q) == view.Finished })
	for i, m := range b.peers {
		if i != last {
			a.groups[m.ID()].Close()
		}
	}
	o := b.attach(k, map[view.Process]func(*part){q: func(p *part) {
		p.back(exitedMessage(q, wellEnded), accountMessage(q))
		p.writes(q, 0, "a\n")
		p.closes(q, 1)
	}})
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\n")
}

// TestReplacedSubmitterDoesNotEndTheJob: when another process resumes the job, the old one
// sends no message that would end a part or fail a process. It may be connected or disconnected at
// that time.
func TestReplacedSubmitterDoesNotEndTheJob(t *testing.T) {
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
		b.run(b.request(1, 2), nil).want(job.StatusLost, "another p2prun has resumed job ")
	})
	t.Run("away", func(t *testing.T) {
		b := newBed(t, never, 1, 1)
		k := b.keptOn(2)
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
		o.want(job.StatusLost, "another p2prun has resumed job ")
		if _, err := os.Stat(k.dir); err != nil {
			t.Errorf("the job cannot be resumed: %v", err)
		}
	})
}

// leftAlone ends the part when its stream ends. It fails the test if the submitter ends the part
// itself.
func (p *part) leftAlone() {
	for {
		m := &jobpb.ToPeer{}
		err := p.in.ReadMsg(m)
		if reset, ok := errors.AsType[*network.StreamError](err); ok && reset.Remote && reset.ErrorCode == jobpb.Left {
			p.Error("the submitter said that the part was over")
		}
		if err != nil {
			p.vanish()
		}
		if m.GetStop() != nil {
			p.Errorf("unexpected message %v", m)
		}
	}
}

package submit

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// healing returns a job of one rank and two replicas in which lost replicas are replaced.
func (b *bed) healing() Request {
	req := b.request(1, 2)
	req.Heal = true
	return req
}

// caughtUp reports that q, which has joined, has caught up.
func (p *part) caughtUp(q view.Process) {
	p.say(healedMessage(q))
}

func healedMessage(q view.Process) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Healed{Healed: &jobpb.Healed{Process: jobpb.FromProcess(q), Messages: 7}}}
}

// TestLostReplicaIsReplaced loses both replicas of a rank, the second one after the first was
// replaced. The third replica ends the rank, and the user gets all output once (R6).
func TestLostReplicaIsReplaced(t *testing.T) {
	b := newBed(t, never, 1, 1, 1)
	watch, healed := untilHealed()
	b.play(func(p *part) {
		p.start()
		q := p.processes[0]
		switch q.Replica {
		case 0:
			p.enter()
			p.writes(q, 0, "a\n")
			p.acknowledged(1)
			p.vanish()
		case 1:
			p.enter()
			row := await(p, (*jobpb.ToPeer).GetJoined)
			if row.Process.View() != proc(0, 2) || len(row.Key) != proclink.KeySize || len(row.Peer) == 0 || len(row.Addrs) == 0 {
				t.Errorf("joined by %v", row)
			}
			p.until(proc(0, 2), view.Live)
			<-healed
			p.awaitVote(p2ppeer.ID(row.Peer))
			p.vanish()
		case 2:
			if e := await(p, (*jobpb.ToPeer).GetEmitted); e.Stdout != 1 {
				t.Errorf("the recruit hears that the user has %v", e)
			}
			p.enter()
			p.until(q, view.Live)
			p.caughtUp(q)
			p.until(proc(0, 1), view.Failed)
			p.writes(q, 1, "b\n")
			p.closes(q, 2)
			p.exits(q, wellEnded)
		}
	})
	o := b.run(b.healing(), watch)
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\nb\n")
	if n := strings.Count(o.texts(), "rank 0 lacks a replica; looking for another peer"); n != 2 {
		t.Errorf("%d losses are told, want 2", n)
	}
	o.told("rank 0 has 2 replicas again (replica 2 on peer …")
	o.told("7 messages replayed")
	o.told("1 new replica given to ranks that had lost one")
	if v := o.view(); v.State(proc(0, 0)) != view.Failed || v.State(proc(0, 1)) != view.Failed || v.State(proc(0, 2)) != view.Finished {
		t.Errorf("last view %+v", v)
	}
}

// TestRecruitLearnsOfAProposedProcess: the row of a proposed process, whose join is not agreed on
// yet, was sent before this recruit existed. Without the row, the recruit would never accept the
// view with that process.
func TestRecruitLearnsOfAProposedProcess(t *testing.T) {
	b := newBed(t, never, 1, 1, 1, 1, 1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var divided sync.WaitGroup // until the remaining members of the view group have no majority
	divided.Add(2)
	staging, proposed := make(chan struct{}), make(chan struct{})
	told := false
	b.play(func(p *part) {
		switch q := p.processes[0]; {
		case q.Replica == 0:
			p.start()
			p.enter()
			p.vanish()
		case q.Replica == 1:
			p.start()
			p.enter()
			<-staging
			p.views.Close()
			p.views = nil
			divided.Done()
		case q.Rank == 0:
			p.prepared("")
			p.started("")
			divided.Wait()
			p.initialized(q)
			await(p, (*jobpb.ToPeer).GetJoined)
			close(proposed)
		default:
			close(staging)
			<-proposed
			p.prepared("")
			for _, row := range await(p, (*jobpb.ToPeer).GetStart).Members {
				told = told || row.Process.View() == proc(0, 2)
			}
			cancel()
		}
	})
	req := b.request(2, 2)
	req.Heal = true
	b.runUntil(ctx, req, nil).want(job.StatusCancelled, "cancelled")
	if !told {
		t.Error("the second recruit was not told where the first runs, which had been proposed")
	}
}

func TestFailedRecruitIsReplaced(t *testing.T) {
	skip.Long(t)
	b := newBed(t, never, 1, 1, 1, 1)
	cases := map[string]func(*part, view.Process){
		"it cannot stage":      func(p *part, _ view.Process) { p.prepared("no room") },
		"lost while it stages": func(p *part, _ view.Process) { p.vanish() },
		"it cannot start":      func(p *part, _ view.Process) { p.prepared(""); p.started("no memory") },
		"its process ends":     func(p *part, q view.Process) { p.start(); p.exits(q, killed) },
		"lost before it joins": func(p *part, _ view.Process) { p.start(); p.vanish() },
		"lost when it joins":   func(p *part, _ view.Process) { p.start(); p.enter(); p.vanish() },
		"it breaks the rules":  func(p *part, q view.Process) { p.start(); p.caughtUp(q) },
	}
	for name, fails := range cases {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			recruits := 0
			watch, healed := untilHealed()
			b.in(t).play(func(p *part) {
				q := p.processes[0]
				if q.Replica < 2 {
					p.start()
					p.enter()
					if q.Replica == 0 {
						p.vanish()
					}
					<-healed
					p.ends(q)
					return
				}
				mu.Lock()
				recruits++
				number := recruits
				mu.Unlock()
				if number == 1 {
					fails(p, q)
					return
				}
				p.start()
				p.enter()
				p.caughtUp(q)
				<-healed
				p.ends(q)
			})
			o := b.run(b.healing(), watch)
			o.want(job.StatusOK, "")
			if recruits != 2 {
				t.Errorf("%d recruits, want 2", recruits)
			}
		})
	}
	b.in(t)
}

// TestPeerOfAFailedProcessIsRecruitedAgain: the peer is first told to stop, and releases its
// slot.
func TestPeerOfAFailedProcessIsRecruitedAgain(t *testing.T) {
	b := newBed(t, never, 1, 1)
	watch, healed := untilHealed()
	told := make(chan struct{})
	b.play(func(p *part) {
		p.start()
		p.enter()
		switch q := p.processes[0]; q.Replica {
		case 0:
			<-healed
			p.ends(q)
		case 1:
			p.atStop = func() { close(told) }
			p.exits(q, killed)
		default:
			<-told
			p.caughtUp(q)
			<-healed
			p.ends(q)
		}
	})
	o := b.run(b.healing(), watch)
	o.want(job.StatusOK, "")
	o.told("rank 0 has 2 replicas again")
}

// TestR7RankWithoutASourceForItsNewReplicaIsLost: such a rank is lost although its new process
// is live.
func TestR7RankWithoutASourceForItsNewReplicaIsLost(t *testing.T) {
	b := newBed(t, never, 1, 1, 1)
	joined := make(chan p2ppeer.ID, 1)
	b.play(func(p *part) {
		p.start()
		p.enter()
		switch p.processes[0].Replica {
		case 0:
			p.vanish()
		case 1:
			p.awaitVote(<-joined)
			p.vanish()
		default:
			joined <- p.peer.ID()
		}
	})
	o := b.run(b.healing(), nil)
	o.want(job.StatusLost, "rank 0 lost all its replicas: ")
	if !strings.Contains(o.Message, "replica 2 had yet to be brought up to date") {
		t.Errorf("said %q", o.Message)
	}
}

// TestS4EndDuringRecruitmentReleasesEverything covers every phase of the recruit.
func TestS4EndDuringRecruitmentReleasesEverything(t *testing.T) {
	b := newBed(t, never, 1, 1, 1)
	stages := map[string]func(*part){
		"looking": nil, "asked to stage": func(*part) {}, "staged": func(p *part) { p.prepared("") }, "started": (*part).start,
	}
	for name, stage := range stages {
		for _, cancel := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, cancelled %v", name, cancel), func(t *testing.T) {
				ctx, end := context.WithTimeout(t.Context(), eventTimeout)
				defer end()
				there := make(chan struct{})
				over := func(p *part, q view.Process) {
					if cancel {
						end()
						return
					}
					p.ends(q)
				}
				b.in(t).play(func(p *part) {
					switch q := p.processes[0]; q.Replica {
					case 0:
						p.start()
						p.enter()
						p.vanish()
					case 1:
						p.start()
						p.enter()
						p.until(proc(0, 0), view.Failed)
						if stage != nil {
							<-there
						}
						over(p, q)
					default:
						if stage != nil {
							stage(p)
							close(there)
						}
					}
				})
				status := map[bool]int{false: job.StatusOK, true: job.StatusCancelled}
				b.runUntil(ctx, b.healing(), nil).want(status[cancel], "")
			})
		}
	}
	b.in(t)
}

// TestF1SilentRecruitFails: the recruit's peer keeps its stream open and sends no heartbeat.
func TestF1SilentRecruitFails(t *testing.T) {
	skip.Long(t)
	b := newBed(t, 250*time.Millisecond, 1, 1, 1)
	b.play(func(p *part) {
		p.start()
		switch q := p.processes[0]; q.Replica {
		case 0:
			p.join()
			p.enter()
			p.vanish()
		case 1:
			p.join()
			p.enter()
			p.until(proc(0, 2), view.Live)
			p.until(proc(0, 2), view.Failed)
			p.ends(q)
		case 2:
			p.enter()
		}
	})
	o := b.run(b.healing(), nil)
	o.want(job.StatusOK, "")
	o.told("it has been silent for too long")
}

// untilHealed returns a watch of events, and a channel that it closes when a rank has its replica
// again.
func untilHealed() (watch func(Event) error, healed <-chan struct{}) {
	c := make(chan struct{})
	var once sync.Once
	return func(e Event) error {
		if e.Kind == HealEvent && e.Placed != nil {
			once.Do(func() { close(c) })
		}
		return nil
	}, c
}

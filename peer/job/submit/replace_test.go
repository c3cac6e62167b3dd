package submit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// These tests lose replicas of a resumed job.

// introduced waits until the view group has admitted the peer of q.
func (p *part) introduced(q view.Process, by *member, number int) {
	p.Helper()
	a := p.agreement
	a.await("the newcomer "+q.String(), func() bool { return a.newcomers[q].ID != "" })
	a.mu.Lock()
	n := a.newcomers[q]
	a.mu.Unlock()
	var row jobpb.Member
	if err := proto.Unmarshal(n.Row, &row); err != nil {
		p.Error(err)
	}
	if row.Process.View() != q || !bytes.Equal(row.Peer, []byte(by.ID())) || n.ID != by.ID() || n.Peer != number || len(row.Key) != proclink.KeySize || len(row.Addrs) == 0 {
		p.Errorf("introduced are %v as %d, want %v as %d", &row, n.Peer, q, number)
	}
}

// entersLate plays a recruit until it waits to join. The members of the view group so far are the
// submitter's first process and the given peers; nil stands for a later process of the submitter.
func (p *part) entersLate(peers ...*member) {
	p.prepared("")
	p.started("")
	p.initialized(p.processes[0])
	m := await(p, (*jobpb.ToPeer).GetAgree)
	var known [][]byte
	for _, m := range append([]*member{nil}, peers...) {
		if m == nil {
			m = p.own
		}
		known = append(known, []byte(m.ID()))
	}
	if m.First != 3 || len(m.Peers) != len(known) || !bytes.Equal(bytes.Join(m.Peers, nil), bytes.Join(known, nil)) || len(m.RunsOn) != 2 || m.RunsOn[0] != 1 || m.RunsOn[1] != 2 {
		p.Errorf("unexpected Agree message %v", m)
	}
	p.vote(m)
}

// runsLate plays a recruit that joins. It runs until the job is over.
func (p *part) runsLate(healed <-chan struct{}) {
	await(p, (*jobpb.ToPeer).GetBegin)
	p.begun = true
	p.caughtUp(p.processes[0])
	<-healed
	p.ends(p.processes[0], "a\n")
}

// endsRank plays the only remaining old replica: it ends once there is a new one.
func (p *part) endsRank(healed <-chan struct{}) {
	<-healed
	p.ends(proc(0, 0), "a\n")
}

// TestResumedJobReplacesALostReplica: a resumed job replaces a lost replica. The new peer has an unused
// number, and is added to the view group before its process joins.
func TestResumedJobReplacesALostReplica(t *testing.T) {
	b := newBed(t, never, 1, 0, 1) // the lost peer has no slot for a recruit
	k := b.keptAs(b.healing(), b.peers[:2])
	b.agrees(k, change(proc(0, 1), view.Failed))
	watch, healed := untilHealed()
	b.play(func(p *part) {
		p.entersLate(b.peers[0], b.peers[1], nil, b.peers[2])
		p.runsLate(healed)
	})
	o := b.attachAnd(watch, k, map[view.Process]func(*part){
		proc(0, 0): func(p *part) {
			p.back()
			p.introduced(proc(0, 2), b.peers[2], 4)
			if kept, err := readKept(k.dir); err != nil || len(kept.Peers) != 3 || kept.Peers[2].Number != 4 || len(kept.Peers[2].Keys) != 1 || len(kept.Peers[2].Keys[0]) != proclink.KeySize {
				t.Errorf("kept before any peer hears of it: %+v, %v", kept.Peers, err)
			}
			p.endsRank(healed)
		},
		proc(0, 1): func(p *part) { p.ended(make(chan struct{})) },
	})
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\n")
	o.told("rank 0 lacks a replica; looking for another peer")
	o.told("rank 0 has 2 replicas again (replica 2 on peer …")
	o.changesNameTheirSource()
}

// TestResumedJobAdmitsThePredecessorsRecruit: a recruit of the previous process may be known to
// some peers, so its process and number are given to no other peer. If the recruit no longer
// exists, it fails, and the job finds another one.
func TestResumedJobAdmitsThePredecessorsRecruit(t *testing.T) {
	skip.Long(t)
	t.Run("it waits", func(t *testing.T) {
		b := newBed(t, never, 1, 0, 0)
		k := b.keptAs(b.healing(), b.peers)
		b.agrees(k, change(proc(0, 1), view.Failed))
		watch, healed := untilHealed()
		o := b.attachAnd(watch, k, map[view.Process]func(*part){
			proc(0, 0): func(p *part) {
				p.back()
				p.introduced(proc(0, 2), b.peers[2], 3)
				p.endsRank(healed)
			},
			proc(0, 1): func(p *part) { p.ended(make(chan struct{})) },
			proc(0, 2): func(p *part) {
				p.back(initializedMessage(proc(0, 2)))
				p.runsLate(healed)
			},
		})
		o.want(job.StatusOK, "")
		o.told("rank 0 has 2 replicas again (replica 2 on peer …")
	})
	t.Run("it is gone", func(t *testing.T) {
		b := newBed(t, never, 1, 0, 0, 1)
		k := b.keptAs(b.healing(), b.peers[:3])
		b.agrees(k, change(proc(0, 1), view.Failed))
		watch, healed := untilHealed()
		b.play(func(p *part) {
			p.entersLate(b.peers[0], b.peers[1], b.peers[2], nil, b.peers[3])
			p.runsLate(healed)
		})
		gone := func(p *part) { p.ended(make(chan struct{})) }
		o := b.attachAnd(watch, k, map[view.Process]func(*part){
			proc(0, 0): func(p *part) {
				p.back()
				p.agreed(proc(0, 2), view.Failed)
				p.introduced(proc(0, 3), b.peers[3], 5)
				p.endsRank(healed)
			},
			proc(0, 1): gone,
			proc(0, 2): gone,
		})
		o.want(job.StatusOK, "")
		o.told("rank 0 has 2 replicas again (replica 3 on peer …")
	})
}

// TestResumedJobReplacesAFailedRecruit: no peer has been told of the failed recruit,
// so the next one gets its number and process. Its slot is released.
func TestResumedJobReplacesAFailedRecruit(t *testing.T) {
	skip.Long(t)
	const cannotBeKept = "it cannot be kept"
	for name, fails := range map[string]func(p *part, folder string){
		"it refuses": func(p *part, _ string) { p.prepared("no room") },
		cannotBeKept: func(p *part, folder string) {
			p.prepared("")
			p.started("")
			if err := os.Rename(folder, folder+".away"); err != nil {
				p.Error(err)
			}
			p.initialized(p.processes[0])
			await(p, (*jobpb.ToPeer).GetStop)
			if err := os.Rename(folder+".away", folder); err != nil {
				p.Error(err)
			}
			p.vanish()
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, never, 1, 0, 1, 1)
			k := b.keptAs(b.healing(), b.peers[:2])
			b.agrees(k, change(proc(0, 1), view.Failed))
			watch, healed := untilHealed()
			other := make(chan *member, 1)
			var recruits atomic.Int32
			b.play(func(p *part) {
				if recruits.Add(1) == 1 {
					fails(p, k.dir)
					return
				}
				other <- p.peer
				p.entersLate(b.peers[0], b.peers[1], nil, p.peer)
				p.runsLate(healed)
			})
			o := b.attachAnd(watch, k, map[view.Process]func(*part){
				proc(0, 0): func(p *part) {
					p.back()
					p.introduced(proc(0, 2), <-other, 4)
					p.endsRank(healed)
				},
				proc(0, 1): func(p *part) { p.ended(make(chan struct{})) },
			})
			o.want(job.StatusOK, "")
			o.wrote(0, job.Stdout, "a\n")
			o.told("rank 0 has 2 replicas again (replica 2 on peer …")
			if name == cannotBeKept {
				o.told("rank 0 still lacks a replica: a new replica cannot be recorded")
			}
		})
	}
}

// TestReplicaIsReplacedWhileTheRecordCannotBeWritten: a job whose record cannot be replaced when a recruit is to join
// is not resumable, but gets the replica. The record is written as soon as possible.
func TestReplicaIsReplacedWhileTheRecordCannotBeWritten(t *testing.T) {
	skip.Long(t)
	b := newBed(t, never, 1, 1, 1)
	b.submitter.cfg.Jobs = t.TempDir()
	watch, healed := untilHealed()
	restored := make(chan struct{})
	b.play(func(p *part) {
		file := filepath.Join(b.submitter.cfg.Jobs, p.spec.ID, "job")
		q := p.processes[0]
		p.start()
		switch q.Replica {
		case 0:
			p.enter()
			p.vanish()
		case 2: // an empty folder cannot be replaced by a file, but can be removed
			if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
				t.Error(err)
			}
			p.enter()
			if kept, err := readKept(filepath.Dir(file)); err == nil && len(kept.Peers) < 3 {
				t.Errorf("the record lacks the recruit: %+v", kept.Peers)
			}
			p.caughtUp(q)
		default:
			p.enter()
		}
		<-healed
		<-restored
		p.ends(q, "a\n")
	})
	req := b.healing()
	req.Away = time.Minute
	tells := 0
	o := b.run(req, func(e Event) error {
		if strings.HasSuffix(e.Text, " resumes the job") {
			if tells++; tells == 2 {
				all, err := Keeping(b.submitter.cfg.Jobs)
				if err != nil || len(all) != 1 || len(all[0].Peers) != 3 {
					t.Errorf("kept %+v, %v", all, err)
				}
				close(restored)
			}
		}
		return watch(e)
	})
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "a\n")
	o.told("the job cannot be resumed, since it cannot be recorded")
}

// TestResumedJobReportsThatItCannotReplace covers jobs for which the program was not recorded.
func TestResumedJobReportsThatItCannotReplace(t *testing.T) {
	skip.Long(t)
	for name, spoil := range map[string]func(*keeper) error{
		"no job":     func(k *keeper) error { return os.Remove(filepath.Join(k.dir, "work")) },
		"no program": func(k *keeper) error { return os.RemoveAll(filepath.Join(k.dir, "contents")) },
		"another's": func(k *keeper) error {
			return os.WriteFile(filepath.Join(k.dir, "work"), []byte(`{"spec":"AAAA"}`), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, never, 1, 1, 1)
			k := b.keptAs(b.healing(), b.peers[:2])
			b.agrees(k, change(proc(0, 1), view.Failed))
			if err := spoil(k); err != nil {
				t.Fatal(err)
			}
			b.play(func(*part) { t.Error("a peer is asked to run a new replica") })
			o := b.attach(k, map[view.Process]func(*part){
				proc(0, 0): func(p *part) {
					p.back()
					p.ends(proc(0, 0), "a\n")
				},
				proc(0, 1): func(p *part) { p.ended(make(chan struct{})) },
			})
			o.want(job.StatusOK, "")
			o.told("lost replicas will not be replaced")
		})
	}
}

// TestJobWithoutNumbersIsNotResumed: without the numbers of its peers, no process can join the view
// group. The job stays kept.
func TestJobWithoutNumbersIsNotResumed(t *testing.T) {
	b := newBed(t, never, 1, 1)
	k := b.keptOn(2)
	k.kept.Peers[1].Number = 0
	if err := k.write(); err != nil {
		t.Fatal(err)
	}
	k.close()
	o := b.follow(func(emit func(Event) error) job.Result {
		return b.submitter.Attach(b.Context(), k.kept.Job, Showing(emit))
	}, nil)
	o.want(job.StatusUsage, "lacks the numbers of its peers")
	if _, err := os.Stat(k.dir); err != nil {
		t.Errorf("the job is not kept any more: %v", err)
	}
}

// TestNoPeerIsRecruitedWhileANumberIsUnknown: a new peer could get the missing number.
func TestNoPeerIsRecruitedWhileANumberIsUnknown(t *testing.T) {
	e := newBed(t, never, 1, 1).partedOn()
	e.j.resumed, e.partition.active, e.recruitment.healing = true, false, newHealing(2)
	for i, l := range e.peers.links {
		l.number = i // 0 means that it has none
	}
	for _, p := range e.state.View().Processes() {
		e.state.Apply(job.Initialized{Process: p})
	}
	lose(e.state, proc(0, 1))
	if !e.state.Lacks(0) {
		t.Fatal("nothing is to be replaced")
	}
	for range 3 {
		e.heal()
	}
	if e.recruitment.search != nil || e.recruitment.healing.Served(0) {
		t.Error("a peer is looked for")
	}
}

package submit

import (
	"bytes"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// These tests lose replicas of a resumed job.

// introduced waits until this part is asked to add the peer of q to the view group, and q to its
// rank.
func (p *part) introduced(q view.Process, by *member, number uint32) {
	m := await(p, (*jobpb.ToPeer).GetIntroduce)
	var row jobpb.Member
	if err := proto.Unmarshal(m.Row, &row); err != nil {
		p.Fatal(err)
	}
	if len(m.Signature) == 0 || row.Process.View() != q || !bytes.Equal(row.Peer, []byte(by.ID())) || m.Number != number || len(row.Key) != proclink.KeySize || len(row.Addrs) == 0 {
		p.Errorf("introduced are %v as %d, want %v as %d", &row, m.Number, q, number)
	}
	p.asked(q, view.Live)
}

// entersLate plays a recruit until it waits to join. The members of the view group are the
// submitter's peer and the given ones.
func (p *part) entersLate(peers ...*member) {
	p.prepared("")
	p.started("")
	p.initialized(p.processes[0])
	m := await(p, (*jobpb.ToPeer).GetAgree)
	var known [][]byte
	for _, m := range append([]*member{p.own}, peers...) {
		known = append(known, []byte(m.ID()))
	}
	if !m.NewProcess || m.First != 3 || len(m.Peers) != len(known) || !bytes.Equal(bytes.Join(m.Peers, nil), bytes.Join(known, nil)) || len(m.RunsOn) != 2 || m.RunsOn[0] != 1 || m.RunsOn[1] != 2 {
		p.Errorf("unexpected Agree message %v", m)
	}
}

// runsLate plays a recruit that joins after the given changes, which are all so far. It runs until
// the job is over.
func (p *part) runsLate(healed <-chan struct{}, said ...*jobpb.FromPeer) {
	for _, m := range said {
		p.say(m)
	}
	await(p, (*jobpb.ToPeer).GetBegin)
	p.begun = true
	p.caughtUp(p.processes[0])
	<-healed
	p.ends(p.processes[0], "a\n")
	p.say(agreedOn(uint64(2+len(said)), proc(0, 0), view.Finished))
}

// endsRank plays the only remaining old replica: it ends once there is a new one, after the view of
// the given epoch.
func (p *part) endsRank(healed <-chan struct{}, epoch uint64) {
	<-healed
	p.ends(proc(0, 0), "a\n")
	p.say(agreedOn(epoch+1, proc(0, 0), view.Finished))
}

// TestResumedJobReplacesALostReplica: a resumed job replaces a lost replica through the view group.
// The new peer has an unused number, is added before its process joins, and gets the views from the
// first one on.
func TestResumedJobReplacesALostReplica(t *testing.T) {
	b := newBed(t, never, 1, 1, 1)
	k := b.keptAs(b.healing(), b.peers[:2])
	watch, healed := untilHealed()
	history := []*jobpb.FromPeer{agreedOn(2, proc(0, 1), view.Failed), agreedOn(3, proc(0, 2), view.Live)}
	b.play(func(p *part) {
		p.entersLate(b.peers...)
		p.runsLate(healed, history...)
	})
	o := b.attachAnd(watch, k, map[view.Process]func(*part){
		proc(0, 0): func(p *part) {
			p.back(history[0])
			p.introduced(proc(0, 2), b.peers[2], 3)
			if kept, err := readKept(k.dir); err != nil || len(kept.Peers) != 3 || kept.Peers[2].Number != 3 || len(kept.Peers[2].Keys) != 1 || len(kept.Peers[2].Keys[0]) != proclink.KeySize {
				t.Errorf("kept before anybody hears of it: %+v, %v", kept.Peers, err)
			}
			p.say(history[1])
			p.endsRank(healed, 3)
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
	failed, joined := agreedOn(2, proc(0, 1), view.Failed), agreedOn(3, proc(0, 2), view.Live)
	t.Run("it waits", func(t *testing.T) {
		b := newBed(t, never, 1, 1, 1)
		watch, healed := untilHealed()
		o := b.attachAnd(watch, b.keptAs(b.healing(), b.peers), map[view.Process]func(*part){
			proc(0, 0): func(p *part) {
				p.back(failed)
				p.introduced(proc(0, 2), b.peers[2], 3)
				p.say(joined)
				p.endsRank(healed, 3)
			},
			proc(0, 1): func(p *part) { p.ended(make(chan struct{})) },
			proc(0, 2): func(p *part) {
				p.back(initializedMessage(proc(0, 2)))
				p.introduced(proc(0, 2), b.peers[2], 3)
				p.processes = []view.Process{proc(0, 2)}
				p.runsLate(healed, failed, joined)
			},
		})
		o.want(job.StatusOK, "")
		o.told("rank 0 has 2 replicas again (replica 2 on peer …")
	})
	t.Run("it is gone", func(t *testing.T) {
		b := newBed(t, never, 1, 1, 1, 1)
		watch, healed := untilHealed()
		history := []*jobpb.FromPeer{failed, joined, agreedOn(4, proc(0, 2), view.Failed), agreedOn(5, proc(0, 3), view.Live)}
		b.play(func(p *part) {
			p.entersLate(b.peers...)
			p.runsLate(healed, history...)
		})
		gone := func(p *part) { p.ended(make(chan struct{})) }
		o := b.attachAnd(watch, b.keptAs(b.healing(), b.peers[:3]), map[view.Process]func(*part){
			proc(0, 0): func(p *part) {
				p.back(failed)
				p.introduced(proc(0, 2), b.peers[2], 3)
				p.say(joined)
				p.asked(proc(0, 2), view.Failed)
				p.say(history[2])
				p.introduced(proc(0, 3), b.peers[3], 4)
				p.say(history[3])
				p.endsRank(healed, 5)
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
	for name, fails := range map[string]func(p *part, folder string){
		"it refuses": func(p *part, _ string) { p.prepared("no room") },
		"it cannot be kept": func(p *part, folder string) {
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
			b := newBed(t, never, 1, 1, 1, 1)
			k := b.keptAs(b.healing(), b.peers[:2])
			watch, healed := untilHealed()
			history := []*jobpb.FromPeer{agreedOn(2, proc(0, 1), view.Failed), agreedOn(3, proc(0, 2), view.Live)}
			other := make(chan *member, 1)
			var recruits atomic.Int32
			b.play(func(p *part) {
				if recruits.Add(1) == 1 {
					fails(p, k.dir)
					return
				}
				other <- p.peer
				p.entersLate(b.peers[0], b.peers[1], p.peer)
				p.runsLate(healed, history...)
			})
			o := b.attachAnd(watch, k, map[view.Process]func(*part){
				proc(0, 0): func(p *part) {
					p.back(history[0])
					p.introduced(proc(0, 2), <-other, 3)
					p.say(history[1])
					p.endsRank(healed, 3)
				},
				proc(0, 1): func(p *part) { p.ended(make(chan struct{})) },
			})
			o.want(job.StatusOK, "")
			o.wrote(0, job.Stdout, "a\n")
			o.told("rank 0 has 2 replicas again (replica 2 on peer …")
		})
	}
}

// TestResumedJobReportsThatItCannotReplace covers jobs for which the program, or the numbers of the
// peers, were not recorded.
func TestResumedJobReportsThatItCannotReplace(t *testing.T) {
	for name, spoil := range map[string]func(*keeper) error{
		"no job":     func(k *keeper) error { return os.Remove(filepath.Join(k.dir, "work")) },
		"no program": func(k *keeper) error { return os.RemoveAll(filepath.Join(k.dir, "contents")) },
		"another's": func(k *keeper) error {
			return os.WriteFile(filepath.Join(k.dir, "work"), []byte(`{"spec":"AAAA"}`), 0o600)
		},
		"no numbers": func(k *keeper) error { k.kept.Peers[1].Number = 0; return k.write() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, never, 1, 1, 1)
			k := b.keptAs(b.healing(), b.peers[:2])
			if err := spoil(k); err != nil {
				t.Fatal(err)
			}
			b.play(func(*part) { t.Error("a peer is asked to run a new replica") })
			o := b.attach(k, map[view.Process]func(*part){
				proc(0, 0): func(p *part) {
					p.back(agreedOn(2, proc(0, 1), view.Failed))
					p.ends(proc(0, 0), "a\n")
					p.say(agreedOn(3, proc(0, 0), view.Finished))
				},
				proc(0, 1): func(p *part) { p.ended(make(chan struct{})) },
			})
			o.want(job.StatusOK, "")
			o.told("lost replicas will not be replaced")
		})
	}
}

// TestNoPeerIsRecruitedWhileANumberIsUnknown: a new peer could get the missing number.
func TestNoPeerIsRecruitedWhileANumberIsUnknown(t *testing.T) {
	e := newBed(t, never, 1, 1).partedOn()
	e.resume()
	e.partition.active, e.resumption.caughtUp, e.recruitment.healing = false, true, newHealing(2)
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

package submit

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

func TestR6EachRanksFilesAreCollectedOnce(t *testing.T) {
	cases := map[string]struct {
		ranks [][]string // by rank: path, content, ...
		want  []string
	}{
		"alike":                 {[][]string{{"a", "1"}, {"a", "1"}}, []string{"a=1"}},
		"each its own":          {[][]string{{"a", "1"}, {"b", "2"}}, []string{"a=1", "b=2"}},
		"one differs":           {[][]string{{"a", "1", "s", "s"}, {"a", "2", "s", "s"}, {"a", "1"}}, []string{"rank0/a=1", "rank1/a=2", "rank2/a=1", "s=s"}},
		"file and folder":       {[][]string{{"a", "1"}, {"a/b", "2"}}, []string{"a/b=2", "rank0/a=1"}},
		"deep":                  {[][]string{{"d/e/a", "1"}, {"d/e/a", "2"}, {"d", "3"}}, []string{"rank0/d/e/a=1", "rank1/d/e/a=2", "rank2/d=3"}},
		"the name exists":       {[][]string{{"a", "1"}, {"a", "2", "rank0/a", "3"}}, []string{"rank-0/a=1", "rank-1/a=2", "rank0/a=3"}},
		"a name like it is not": {[][]string{{"a", "1", "rank0.txt", "x"}, {"a", "2"}}, []string{"rank0.txt=x", "rank0/a=1", "rank1/a=2"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			text := make(map[filetransfer.Digest]string)
			var ranks []filetransfer.Manifest
			for _, files := range c.ranks {
				var m filetransfer.Manifest
				for f := range slices.Chunk(files, 2) {
					e := filetransfer.Entry{Path: f[0], Size: int64(len(f[1])), Digest: filetransfer.DigestOf([]byte(f[1]))}
					text[e.Digest] = f[1]
					m = append(m, e)
				}
				ranks = append(ranks, m)
			}
			var got []string
			for _, m := range arrange(ranks) {
				if err := m.Validate(); err != nil {
					t.Errorf("cannot be laid out: %v", err)
				}
				for _, f := range m {
					got = append(got, f.Path+"="+text[f.Digest])
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestR6FilesComeFromAnotherReplica: one replica of a finished rank fails to provide its files, and
// the other one provides them.
func TestR6FilesComeFromAnotherReplica(t *testing.T) {
	m, q := proc(0, 0), proc(0, 1)
	b := newBed(t, never, 1, 1)
	answer := func(p *part, manifest []byte, problem string) {
		await(p, (*jobpb.ToPeer).GetCollect)
		p.say(collectedMessage(m, manifest, problem))
	}
	cases := map[string]struct {
		fault func(*part)
		late  bool // the other replica has yet to end
	}{
		"its peer vanishes":                       {func(p *part) { await(p, (*jobpb.ToPeer).GetCollect); p.vanish() }, false},
		"its peer vanishes, the other is late":    {func(p *part) { await(p, (*jobpb.ToPeer).GetCollect); p.vanish() }, true},
		"its peer cannot":                         {func(p *part) { answer(p, nil, "disk on fire") }, false},
		"its list is nonsense":                    {func(p *part) { answer(p, []byte("nonsense"), "") }, false},
		"its list leads out":                      {func(p *part) { answer(p, []byte("\n\x08\n\x04../x\x18\x01"), "") }, false},
		"it lists a file that matches no pattern": {func(p *part) { answer(p, p.put(map[string]string{".bashrc": "evil"}), "") }, false},
		"it does not serve a listed file":         {func(p *part) { e := p.put(map[string]string{"a.out": "1"}); p.offered[0](); answer(p, e, "") }, false},
		"it answers for another process":          {func(p *part) { await(p, (*jobpb.ToPeer).GetCollect); p.say(collectedMessage(q, nil, "")) }, false},
		"it answers twice":                        {func(p *part) { answer(p, nil, "first"); p.say(collectedMessage(m, nil, "second")) }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b.in(t).play(func(p *part) {
				p.start()
				if p.runs(m) {
					if !c.late {
						p.until(q, view.Finished)
					}
					p.ends(m)
					c.fault(p)
					return
				}
				if c.late {
					p.until(m, view.Finished)
				}
				p.exits(q, job.Exit{})
				p.offers(q, map[string]string{"a.out": "right"})
			})
			req := b.request(1, 2)
			req.Outputs, req.OutputDir = []string{"*.out"}, t.TempDir()
			o := b.run(req, nil)
			o.want(job.StatusOK, "")
			if got := folder(t, req.OutputDir); got != "a.out=right" {
				t.Errorf("collected %q", got)
			}
		})
	}
	b.in(t)
}

// TestR6FetchFromALostPeerIsGivenUp: the peer is lost during the transfer of its file, and the
// transfer itself hangs.
func TestR6FetchFromALostPeerIsGivenUp(t *testing.T) {
	m, q := proc(0, 0), proc(0, 1)
	b := newBed(t, never, 1, 1)
	b.play(func(p *part) {
		p.start()
		if p.runs(m) {
			p.until(q, view.Finished)
			asked := make(chan struct{}, 16)
			p.peer.SetStreamHandler(filetransfer.ProtocolID, func(network.Stream) { asked <- struct{}{} })
			p.ends(m)
			p.offers(m, map[string]string{"a.out": "slow"})
			<-asked
			p.vanish()
		}
		p.exits(q, job.Exit{})
		p.offers(q, map[string]string{"a.out": "right"})
	})
	req := b.request(1, 2)
	req.Outputs, req.OutputDir = []string{"*.out"}, t.TempDir()
	b.run(req, nil).want(job.StatusOK, "")
	if got := folder(t, req.OutputDir); got != "a.out=right" {
		t.Errorf("collected %q", got)
	}
}

func TestUnavailableFilesAreALoss(t *testing.T) {
	b := newBed(t, never, 1, 1)
	b.play(func(p *part) {
		p.start()
		if q := p.processes[0]; q.Replica == 0 {
			p.until(proc(0, 1), view.Finished)
			p.ends(q)
		} else {
			p.exits(q, job.Exit{})
		}
		await(p, (*jobpb.ToPeer).GetCollect)
		p.say(collectedMessage(p.processes[0], nil, fmt.Sprintf("no %v", p.processes[0])))
	})
	req := b.request(1, 2)
	req.Outputs, req.OutputDir = []string{"*.out"}, t.TempDir()
	b.run(req, nil).want(job.StatusLost, "the output files of rank 0 could not be collected: no 0.1")
}

func TestUnwritableFilesAreReported(t *testing.T) {
	b := newBed(t, never, 1)
	req := b.request(1, 1)
	req.Outputs, req.OutputDir = []string{"a"}, b.TempDir()
	b.play(func(p *part) {
		p.start()
		b.write(req.OutputDir+"/a", "a file where a folder is to go")
		p.ends(proc(0, 0))
		p.offers(proc(0, 0), map[string]string{"a/b": "1"})
	})
	b.run(req, nil).want(job.StatusUsage, "its output files could not be written")
}

// TestR6FilesOfDivergedReplicasAreNotCollected: one replica ends with a different account while the
// files of the other are already being collected.
func TestR6FilesOfDivergedReplicasAreNotCollected(t *testing.T) {
	m, q := proc(0, 0), proc(0, 1)
	b := newBed(t, never, 1, 1)
	account := func(p *part, q view.Process, text string) {
		digest := sha256.Sum256([]byte(text))
		p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Account{Account: &jobpb.Account{
			Process: jobpb.FromProcess(q), Digested: true, Digest: digest[:], Printed: uint64(len(text)),
		}}})
	}
	for name, collecting := range map[string]func(*part){
		"its files are being listed": func(p *part) { await(p, (*jobpb.ToPeer).GetCollect) },
		"its files are on their way": func(p *part) {
			asked := make(chan struct{}, 16)
			p.peer.SetStreamHandler(filetransfer.ProtocolID, func(network.Stream) { asked <- struct{}{} })
			p.offers(m, map[string]string{"a.out": "slow"})
			<-asked
		},
	} {
		t.Run(name, func(t *testing.T) {
			begun := make(chan struct{})
			b.in(t).play(func(p *part) {
				p.start()
				p.enter()
				if p.runs(m) {
					account(p, m, "")
					p.ends(m)
					collecting(p)
					close(begun)
					return
				}
				// A suspended replica confirms nothing, and the job does not wait for it.
				p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Paused{Paused: &jobpb.Paused{Rule: "the owner is there"}}})
				<-begun
				account(p, q, "something else")
			})
			req := b.request(1, 2)
			req.Outputs, req.OutputDir = []string{"*.out"}, t.TempDir()
			b.run(req, nil).want(job.StatusDiverged, "the replicas of rank 0 have diverged")
		})
	}
	b.in(t)
}

// TestR6DoneResumedJobIsNotLostWithItsPeers: a resumed job that is done does not end with
// StatusLost when its peers are lost. If files are missing, collect reports that.
func TestR6DoneResumedJobIsNotLostWithItsPeers(t *testing.T) {
	for _, done := range []bool{true, false} {
		e := newHearing(t)
		e.j.resumed, e.partition.active = true, true
		if done {
			e.state.Apply(job.CutOff{})
		}
		for _, l := range e.peers.links {
			l.lose(errSilent)
		}
		if r := e.giveUp(); (r == nil) != done {
			t.Errorf("done %v, and no peer is left: %+v", done, r)
		}
	}
}

package launch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/supervisor"
)

// TestO2PausedJobStandsStill: neither a program that answers questions nor one that never joined the job is
// taken for hung meanwhile, and both go on afterwards.
func TestO2PausedJobStandsStill(t *testing.T) {
	skip.Long(t)
	if runtime.GOOS != "linux" {
		skip.Lacks(t, "a system that tells what processes do")
	}
	for name, c := range map[string]struct {
		program []string
		until   func(*testJob)
	}{
		"a message-passing program": {[]string{"wait"}, (*testJob).run},
		"another one":               {[]string{"shell", "while :; do echo line; sleep 0.01; done"}, (*testJob).start},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newTestJob(t, 2, 1, nil, c.program...)
			c.until(j)
			service := j.peers[0].launch
			service.Pause(Pause{Rule: "battery", Most: time.Hour})
			if m := await(j.links[0], (*jobpb.FromPeer).GetPaused); m.Rule != "battery" || time.Duration(m.MostNs) != time.Hour {
				t.Errorf("the submitter reads %v", m)
			}
			j.eventually("all stand", func() bool { return j.standing() == 2 })
			if all := service.Jobs(); len(all) != 1 || all[0].Paused.IsZero() {
				t.Errorf("the owner sees %+v", all)
			}
			<-time.After(2 * faultdetect.DefaultHang) // the supervisors answer in their own time
			if n := j.standing(); n != 2 {
				t.Errorf("%d programs stand", n)
			}

			service.Pause(Pause{})
			if m := await(j.links[0], (*jobpb.FromPeer).GetPaused); m.Rule != "" {
				t.Errorf("the submitter reads %v", m)
			}
			j.eventually("all go on", func() bool {
				all := processesOf(new(supervisor.Census), j.instances(0))
				for _, pids := range all {
					if states := statesOf(pids); states == "" || strings.Contains(states, "T") {
						return false
					}
				}
				return len(all) == 2
			})
			if all := service.Jobs(); len(all) != 1 || !all[0].Paused.IsZero() {
				t.Errorf("the owner sees %+v", all)
			}
			j.stop()
		})
	}
}

// TestO2PausedJobEnds when it has stood for as long as the owner bears it, and reads why.
func TestO2PausedJobEnds(t *testing.T) {
	skip.Long(t)
	const why = "its owner needs the machine: metered"
	for name, most := range map[string]time.Duration{"at once": 0, "soon": time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newTestJob(t, 2, 1, nil, "wait")
			j.run()
			j.peers[0].launch.Pause(Pause{Rule: "metered", Most: most})
			for rank := range 2 {
				if e := j.links[0].exited(view.Process{Rank: rank}); e.Reason != why {
					t.Errorf("rank %d: %v", rank, e)
				}
			}
			j.gone() // although the submitter says nothing
		})
	}
}

// TestO2PausedPeerPreparesNothing: what does not run yet ends at once, however long others may stand, and its
// submitter reads why. Nothing more is fetched, by the byte or on battery.
func TestO2PausedPeerPreparesNothing(t *testing.T) {
	skip.Long(t)
	pause, why := Pause{Rule: "metered", Most: time.Hour}, "its owner needs the machine: metered"
	t.Run("staging", func(t *testing.T) {
		t.Parallel()
		j := newTestJob(t, 2, 1, nil, "wait")
		wait := func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }
		t.Cleanup(j.submitter.files.Pace(j.spec.ID, wait)) // nothing comes
		l := j.connect(j.peers[0])
		l.say(j.prepareMessage(0, j.reserve(j.peers[0], j.spec.N)))
		await(l, (*jobpb.FromPeer).GetStaging)
		j.peers[0].launch.Pause(pause)
		if p := await(l, (*jobpb.FromPeer).GetPrepared); p.Error != why {
			t.Errorf("the submitter reads %v", p)
		}
		j.gone()
	})
	t.Run("staged", func(t *testing.T) {
		t.Parallel()
		j := newTestJob(t, 2, 1, nil, "wait")
		j.prepare()
		j.peers[0].launch.Pause(pause)
		hosted := j.hosted(0)
		hosted.do(hosted.heed)
		j.tell(j.startMessage())
		if s := await(j.links[0], (*jobpb.FromPeer).GetStarted); s.Error != why {
			t.Errorf("the submitter reads %v", s)
		}
		j.gone()
	})
}

// TestO2PausedPeerPassesNothingOn to the others of a job, one that stands still included.
func TestO2PausedPeerPassesNothingOn(t *testing.T) {
	t.Parallel()
	bed := newTestbed(t, 2, 1)
	j := bed.newJob(t, 1, 1, map[string]string{"input": strings.Repeat("input", 1<<18)}, "wait")
	fellow := bed.peers[1]
	fellow.meet(bed.peers[0])
	l := j.connect(bed.peers[0])
	m := j.prepareMessage(0, j.reserve(bed.peers[0], 1))
	m.GetPrepare().Fellows = []*jobpb.Fellow{{Peer: []byte(fellow.ID())}}
	l.processes = 1
	l.say(m)
	if p := await(l, (*jobpb.FromPeer).GetPrepared); p.Error != "" {
		t.Fatal(p.Error)
	}
	j.links = append(j.links, l)
	j.tell(j.startMessage())
	await(l, (*jobpb.FromPeer).GetStarted)

	digest, err := filetransfer.ParseDigest(j.spec.Inputs)
	if err != nil {
		t.Fatal(err)
	}
	inputs, err := bed.peers[0].files.Store().Manifest(t.Context(), digest)
	if err != nil {
		t.Fatal(err)
	}
	// ask takes the peer for the submitter, who never says that it shares.
	ask := func() string {
		return fmt.Sprint(fellow.files.Fetch(t.Context(), bed.peers[0].ID(), j.spec.ID, inputs.Wants(), nil))
	}
	const shares = "it says what it has"
	if said := ask(); !strings.Contains(said, shares) {
		t.Fatalf("a fellow hears %s", said)
	}
	bed.peers[0].launch.Pause(Pause{Rule: "metered", Most: time.Hour})
	hosted := j.hosted(0)
	answered(t, hosted, func() bool { hosted.heed(); return true })
	if said := ask(); strings.Contains(said, shares) || said == "<nil>" {
		t.Errorf("a fellow hears %s", said)
	}
	if sent := bed.peers[0].files.Stats().BytesSent; sent != 0 {
		t.Errorf("it was sent %d bytes", sent)
	}
	j.stop()
}

// TestO2PauseIsNotForEveryJob: those with replicas go on to be handed over, for a while; then they stand still too,
// whatever their submitter does, unless somebody has come who has to be brought up to date.
func TestO2PauseIsNotForEveryJob(t *testing.T) {
	skip.Long(t)
	t.Parallel()
	bed := newTestbed(t, 3, 1)
	j := bed.newJob(t, 1, 2, nil, "wait")
	j.run()
	pause := Pause{Rule: "battery", Most: time.Hour}
	for _, peer := range j.peers {
		peer.launch.Pause(pause)
	}
	<-time.After(2 * tickPeriod)
	for _, peer := range j.peers {
		if all := peer.launch.Jobs(); len(all) != 1 || !all[0].Paused.IsZero() {
			t.Errorf("the owner sees %+v", all)
		}
	}
	if !canStand {
		j.stop()
		return
	}
	for _, l := range j.links {
		if m := await(l, (*jobpb.FromPeer).GetPaused); m.Rule != pause.Rule {
			t.Errorf("the submitter reads %v", m)
		}
	}
	j.eventually("all stand", func() bool { return j.standing() == 1 })

	row := j.member(view.Process{Replica: 2}, bed.peers[2])
	j.links[0].say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Joined{Joined: row}})
	if m := await(j.links[0], (*jobpb.FromPeer).GetPaused); m.Rule != "" {
		t.Errorf("the submitter reads %v", m)
	}
	hosted := j.hosted(0)
	hosted.do(func() { hosted.pausedAt = hosted.pausedAt.Add(-updateTimeout) })
	if m := await(j.links[0], (*jobpb.FromPeer).GetPaused); m.Rule != pause.Rule {
		t.Errorf("the submitter reads %v", m)
	}
	j.stop()
}

// standing counts the programs of the first peer that stand still, with all that they have started.
func (j *testJob) standing() (n int) {
	j.Helper()
	instances := j.instances(0)
	for _, pids := range processesOf(new(supervisor.Census), instances) {
		states, parents := make(map[int]byte), make(map[int]bool)
		for _, pid := range pids {
			if stat := statOf(pid); len(stat) > 1 {
				states[pid] = stat[0][0]
				parent, _ := strconv.Atoi(stat[1])
				parents[parent] = parents[parent] || states[pid] == 'T'
			}
		}
		all := len(states) > 0
		for pid, state := range states {
			// Who has ended is waited for by one who stands, and one who waits for a child that does can do nothing else.
			all = all && (state == 'T' || state == 'Z' || state == 'D' && parents[pid])
		}
		if all {
			n++
		}
	}
	return n
}

// statesOf are the states that the kernel tells of some processes, a letter for each that there is.
func statesOf(pids []int) (all string) {
	for _, pid := range pids {
		if stat := statOf(pid); len(stat) > 0 {
			all += stat[0]
		}
	}
	return all
}

// statOf is what the kernel tells of a process, from its state on; nothing of one that there is not.
func statOf(pid int) []string {
	stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return strings.Fields(string(rest))
}

// eventually waits for what no event tells.
func (j *testJob) eventually(what string, is func() bool) {
	j.Helper()
	for late := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			j.Fatalf("not yet: %s", what)
		}
	}
}

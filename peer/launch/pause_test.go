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
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
)

// TestO2SuspendedJobIsStopped checks that a suspended program is not considered hung, whether it answers
// questions or has never joined the job. Both resume afterwards.
func TestO2SuspendedJobIsStopped(t *testing.T) {
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
			j.eventually("all programs are suspended", func() bool { return j.suspendedPrograms() == 2 })
			if all := service.Jobs(); len(all) != 1 || all[0].Paused.IsZero() {
				t.Errorf("the owner sees %+v", all)
			}
			<-time.After(2 * faultdetect.DefaultHang) // the supervisors answer meanwhile
			if n := j.suspendedPrograms(); n != 2 {
				t.Errorf("%d programs are suspended, want 2", n)
			}

			service.Pause(Pause{})
			if m := await(j.links[0], (*jobpb.FromPeer).GetPaused); m.Rule != "" {
				t.Errorf("the submitter reads %v", m)
			}
			j.eventually("all programs resume", func() bool {
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

// TestO2SuspendedJobEndsAfterTheMaximumTime checks that a job ends after the maximum time in suspension,
// and that the submitter learns why.
func TestO2SuspendedJobEndsAfterTheMaximumTime(t *testing.T) {
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
			j.gone() // although the submitter sends nothing
		})
	}
}

// TestO2SuspendedPeerEndsJobsBeforeTheirStart checks that a job that does not run yet ends at once, however
// long others may be suspended, and that its submitter learns why. Nothing more is fetched on a metered
// network or on battery.
func TestO2SuspendedPeerEndsJobsBeforeTheirStart(t *testing.T) {
	skip.Long(t)
	pause, why := Pause{Rule: "metered", Most: time.Hour}, "its owner needs the machine: metered"
	t.Run("staging", func(t *testing.T) {
		t.Parallel()
		j := newTestJob(t, 2, 1, nil, "wait")
		wait := func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }
		t.Cleanup(j.submitter.files.Pace(j.spec.ID, wait)) // nothing arrives
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
		hosted.do(hosted.applyPause)
		j.tell(j.startMessage())
		if s := await(j.links[0], (*jobpb.FromPeer).GetStarted); s.Error != why {
			t.Errorf("the submitter reads %v", s)
		}
		j.gone()
	})
}

// TestO2SuspendedPeerServesNoFiles checks that a paused peer serves no files to other peers of a job, even
// for a suspended job.
func TestO2SuspendedPeerServesNoFiles(t *testing.T) {
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
	// ask treats the peer as the submitter, which never reports that it shares files.
	ask := func() string {
		return fmt.Sprint(fellow.files.Fetch(t.Context(), bed.peers[0].ID(), j.spec.ID, inputs.Wants(), nil))
	}
	const shares = "the origin announced units"
	if said := ask(); !strings.Contains(said, shares) {
		t.Fatalf("another peer received the answer %s", said)
	}
	bed.peers[0].launch.Pause(Pause{Rule: "metered", Most: time.Hour})
	hosted := j.hosted(0)
	answered(t, hosted, func() bool { hosted.applyPause(); return true })
	if said := ask(); strings.Contains(said, shares) || said == "<nil>" {
		t.Errorf("another peer received the answer %s", said)
	}
	if sent := bed.peers[0].files.Stats().BytesSent; sent != 0 {
		t.Errorf("%d bytes were sent to it", sent)
	}
	j.stop()
}

// TestO2ReplicatedJobIsHandedOverBeforeSuspension checks that jobs with replicas continue for a while, to
// be handed over. Then they are suspended too, whatever their submitter does, unless a replacement has to
// be brought up to date.
func TestO2ReplicatedJobIsHandedOverBeforeSuspension(t *testing.T) {
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
	if !canSuspend {
		j.stop()
		return
	}
	for _, l := range j.links {
		if m := await(l, (*jobpb.FromPeer).GetPaused); m.Rule != pause.Rule {
			t.Errorf("the submitter reads %v", m)
		}
	}
	j.eventually("all programs are suspended", func() bool { return j.suspendedPrograms() == 1 })

	row := j.member(view.Process{Replica: 2}, bed.peers[2])
	j.links[0].say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Joined{Joined: row}})
	if m := await(j.links[0], (*jobpb.FromPeer).GetPaused); m.Rule != "" {
		t.Errorf("the submitter reads %v", m)
	}
	hosted := j.hosted(0)
	hosted.do(func() { hosted.reclaim.pausedAt = hosted.reclaim.pausedAt.Add(-updateTimeout) })
	if m := await(j.links[0], (*jobpb.FromPeer).GetPaused); m.Rule != pause.Rule {
		t.Errorf("the submitter reads %v", m)
	}
	j.stop()
}

// suspendedPrograms counts the programs of the first peer that are stopped with all their descendants.
func (j *testJob) suspendedPrograms() (n int) {
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
			// A stopped parent does not reap a child that has ended. A parent that waits in vfork for a
			// stopped child cannot run.
			all = all && (state == 'T' || state == 'Z' || state == 'D' && parents[pid])
		}
		if all {
			n++
		}
	}
	return n
}

// statesOf returns the kernel's state letters of the existing processes.
func statesOf(pids []int) (all string) {
	for _, pid := range pids {
		if stat := statOf(pid); len(stat) > 0 {
			all += stat[0]
		}
	}
	return all
}

// statOf returns the fields of a process's stat file from the state on, or nothing if it does not exist.
func statOf(pid int) []string {
	stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return strings.Fields(string(rest))
}

// eventually waits for a condition that no event announces.
func (j *testJob) eventually(what string, is func() bool) {
	j.Helper()
	for late := time.Now().Add(eventTimeout); !is(); time.Sleep(10 * time.Millisecond) { // interval between polls
		if time.Now().After(late) {
			j.Fatalf("timed out: %s", what)
		}
	}
}

package launch

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/supervisor"
)

// TestO2PausedJobStandsStill: neither a program that answers questions nor one that never joined the job is
// taken for hung meanwhile, and both go on afterwards.
func TestO2PausedJobStandsStill(t *testing.T) {
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
			j.eventually("all go on", func() bool { return j.standing() == 0 })
			if all := service.Jobs(); len(all) != 1 || !all[0].Paused.IsZero() {
				t.Errorf("the owner sees %+v", all)
			}
			j.stop()
		})
	}
}

// TestO2PausedJobEnds when it has stood for as long as the owner bears it, also before it runs, and reads why.
func TestO2PausedJobEnds(t *testing.T) {
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
	t.Run("staged", func(t *testing.T) {
		t.Parallel()
		j := newTestJob(t, 2, 1, nil, "wait")
		j.prepare()
		j.peers[0].launch.Pause(Pause{Rule: "metered"})
		hosted, _ := j.peers[0].launch.lookup(j.spec.ID)
		hosted.do(hosted.heed)
		j.tell(j.startMessage())
		if s := await(j.links[0], (*jobpb.FromPeer).GetStarted); s.Error != why {
			t.Errorf("the submitter reads %v", s)
		}
		j.gone()
	})
}

// TestO2PauseIsNotForEveryJob: those with replicas go on until they are handed over, and those that came
// later stand from the beginning.
func TestO2PauseIsNotForEveryJob(t *testing.T) {
	t.Parallel()
	j := newTestJob(t, 1, 2, nil, "wait")
	j.run()
	for _, peer := range j.peers {
		peer.launch.Pause(Pause{Rule: "battery", Most: time.Hour})
	}
	<-time.After(2 * tickPeriod)
	for _, peer := range j.peers {
		if all := peer.launch.Jobs(); len(all) != 1 || !all[0].Paused.IsZero() {
			t.Errorf("the owner sees %+v", all)
		}
	}
	j.stop()
	bed := newTestbed(t, 1, 1)
	bed.peers[0].launch.Pause(Pause{Rule: "battery", Most: time.Hour})
	late := bed.newJob(t, 1, 1, nil, "wait")
	late.start()
	await(late.links[0], (*jobpb.FromPeer).GetPaused)
	late.stop()
}

// standing counts the programs of the first peer that stand still, with all that they have started.
func (j *testJob) standing() (n int) {
	j.Helper()
	instances := j.instances(0)
	for _, pids := range processesOf(new(supervisor.Census), instances) {
		all := len(pids) > 0
		for _, pid := range pids {
			stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
			_, state, _ := bytes.Cut(stat, []byte(") "))
			ended := err != nil || bytes.HasPrefix(state, []byte("Z")) // and who would wait for it stands
			all = all && (ended || bytes.HasPrefix(state, []byte("T")))
		}
		if all {
			n++
		}
	}
	return n
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

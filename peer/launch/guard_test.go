package launch

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/internal/walk"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

func init() {
	programs["nest"] = func([]string) int { return nest() }
	programs["link"] = func([]string) int { return link() }
}

// nest creates deeply nested folders, and waits.
func nest() int {
	for range walk.MaxDepth + 100 {
		if err := errors.Join(os.Mkdir("folder", 0o700), os.Chdir("folder")); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	time.Sleep(time.Hour) // until it is killed
	return 0
}

// link creates more and more names of one file.
func link() int {
	err := os.WriteFile("file", nil, 0o600)
	for i := 0; i < 1<<20 && err == nil; i++ {
		err = os.Link("file", strconv.Itoa(i))
	}
	fmt.Println(err)      // some file systems limit the number of links
	time.Sleep(time.Hour) // until it is killed
	return 0
}

// TestFileNamesCountTowardsTheDiskLimit checks that names count towards the disk limit. They need little
// space, but measuring them takes time.
func TestFileNamesCountTowardsTheDiskLimit(t *testing.T) {
	skip.Long(t)
	for name, want := range map[string]string{
		"nest": "exceeded the limit of 64 GiB disk: " + walk.ErrDeep.Error(),
		"link": "exceeded the limit of 64 MiB disk: used ",
	} {
		t.Run(name, func(t *testing.T) {
			disk := int64(64 << 20)
			if name == "nest" {
				disk = 64 << 30
			}
			j := newLimited(t, limits.Grant{Slot: limits.Limits{Disk: disk}}, 1, name)
			j.start()
			e := j.links[0].exited(view.Process{})
			if e.Limit != string(limits.Disk) || len(e.Reason) < len(want) || e.Reason[:len(want)] != want {
				t.Errorf("ended with %v", e)
			}
			j.stop()
		})
	}
}

// TestLimitsAreWatchedDuringAMeasurement checks that all other limits are watched while files are measured,
// and that the measurement ends with the job.
func TestLimitsAreWatchedDuringAMeasurement(t *testing.T) {
	j := newLimited(t, limits.Grant{Slot: limits.Limits{Disk: 1 << 40}}, 1, "shell", "echo ready; exec sleep 3600")
	j.start()
	await(j.links[0], (*jobpb.FromPeer).GetOutput)
	here, _ := j.peers[0].launch.lookup(j.spec.ID)
	g := newGuard(here, j.instances(0))
	if err := g.duringWalk(); err != nil {
		t.Errorf("aborted with %v", err)
	}
	if g.meters[0].usage.Time == 0 {
		t.Error("the other limits were not measured")
	}
	here.halting.Store(halted) // as if the owner had just resumed the job
	if err := g.duringWalk(); !errors.Is(err, errSuspensionChanges) {
		t.Errorf("a measurement delays the end of a suspension: %v", err)
	}
	here.halting.Store(notHalted)
	j.stop()
	if err := g.duringWalk(); err == nil {
		t.Error("the measurement continues after the end of the job")
	}
}

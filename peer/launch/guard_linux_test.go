package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/peer/owner/machine"
)

func init() {
	programs["move"] = func([]string) int { return move() }
	programs["flood"] = func([]string) int { return flood() }
}

// movedLimit is the disk limit of move.
const movedLimit = 128 << 20

// move uses nearly all of its disk limit, moves its largest file to and fro while it writes more and more, and
// prints how much it has.
func move() int {
	err := errors.Join(os.Mkdir("a", 0o700), os.Mkdir("z", 0o700), writeZeros("a/big", movedLimit*3/4))
	for n := 0; n < 256 && err == nil; n++ {
		for range 100 {
			err = errors.Join(err, os.Rename("a/big", "z/big"), os.Rename("z/big", "a/big"))
		}
		err = errors.Join(err, writeZeros(fmt.Sprint("more-", n), 1<<20))
		fmt.Println(movedLimit*3/4 + (n+1)<<20)
	}
	fmt.Println(err)
	time.Sleep(time.Hour) // until it is killed
	return 0
}

// writeZeros writes a file of the given size.
func writeZeros(name string, size int) error { return os.WriteFile(name, make([]byte, size), 0o600) }

// TestProgramThatMovesItsFilesIsEnded checks that a program is ended although it moves its files, so that a
// measurement may not find them.
func TestProgramThatMovesItsFilesIsEnded(t *testing.T) {
	j := newLimited(t, limits.Grant{Slot: limits.Limits{Disk: movedLimit}}, 1, "move")
	j.start()
	e, had := j.last(view.Process{})
	if e.Limit != string(limits.Disk) {
		t.Errorf("ended with %v", e)
	}
	t.Logf("had %.0f %% of the limit; %s", had/movedLimit*100, e.Reason)
	j.stop()
}

// A flood writes this many files, each as large as the whole limit and with a single call. On a fast disk a
// call for a smaller file is over before the guard looks.
const (
	floods     = 24
	floodLimit = 512 << 20
)

func flood() int {
	zeros := make([]byte, floodLimit) // uses no memory until it is written
	for n := range floods {
		fd, err := syscall.Open(fmt.Sprint(n), syscall.O_CREAT|syscall.O_WRONLY, 0o600) // not os.File, which would be garbage-collected
		if err != nil {
			fmt.Println(err)
			return 1
		}
		go syscall.Write(fd, zeros) // ends with this process
	}
	time.Sleep(time.Hour) // until it is killed
	return 0
}

// TestLongWritesAreEndedAtTheLimit checks that processes in long write calls, which cannot stop before they
// have exceeded the limit, are ended. As in TestLimitsOfAProcessHold, one of a few tries suffices.
func TestLongWritesAreEndedAtTheLimit(t *testing.T) {
	for try := 1; ; try++ {
		j := newLimited(t, limits.Grant{Slot: limits.Limits{Disk: floodLimit}}, 1, "flood")
		j.start()
		here, _ := j.peers[0].launch.lookup(j.spec.ID)
		most := make(chan int64, 1)
		var wanted int64
		go func() { // ends with the process
			had, files := mostIn(here.folder.Process(view.Process{}))
			wanted = files * floodLimit // other calls were stopped before they began
			most <- had
		}()
		e := j.links[0].exited(view.Process{})
		if e.Limit != string(limits.Disk) {
			t.Errorf("ended with %v", e)
		}
		j.stop()
		had := <-most
		t.Logf("had %.1f times the limit of %d under way; %s", float64(had)/floodLimit, wanted/floodLimit, e.Reason)
		if had < wanted*9/10 {
			return
		}
		if try == 4 {
			t.Fatalf("%d bytes were written, want less", had)
		}
	}
}

// mostIn returns the maximum size and number of files of a folder, until it is removed.
func mostIn(folder string) (most, files int64) {
	for {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return most, files
		}
		sum, begun := int64(0), int64(0)
		for _, e := range entries {
			if info, err := e.Info(); err == nil && info.Size() > 0 {
				sum, begun = sum+info.Size(), begun+1
			}
		}
		if sum > most {
			most, files = sum, begun
		}
		time.Sleep(time.Millisecond) // interval between polls
	}
}

// TestS3JobEndsBeforeTheDiskIsFull checks that a job that stays within its limits ends before its owner's disk
// is full. As in TestLimitsOfAProcessHold, one of a few tries suffices; in each, the job must end.
func TestS3JobEndsBeforeTheDiskIsFull(t *testing.T) {
	for try := 1; ; try++ {
		j := newLimited(t, limits.Grant{Slot: limits.Limits{Disk: 1 << 40}}, 1, "shell", "exec dd if=/dev/zero of=file bs=1M")
		disk := newDisk(t, 256<<20)
		j.peers[0].launch.scratch = disk
		j.start()
		least := make(chan int64, 1)
		stop := make(chan struct{})
		go func() { least <- leastFree(disk, stop) }() // ends with stop
		if e := j.links[0].exited(view.Process{}); e.Reason != errDiskFull.Error() || e.Limit != "" {
			t.Errorf("ended with %v", e)
		}
		close(stop)
		j.gone()
		free := <-least
		t.Logf("at least %d MiB were free", free>>20)
		if free > 0 {
			return
		}
		if try == 4 {
			t.Fatal("the disk was full")
		}
	}
}

// leastFree returns the minimum of the free bytes of a disk until stop is closed.
func leastFree(disk string, stop <-chan struct{}) int64 {
	least := machine.DiskFree(disk)
	for {
		select {
		case <-time.After(time.Millisecond / 2): // interval between polls
			least = min(least, machine.DiskFree(disk))
		case <-stop:
			return least
		}
	}
}

// TestS3IdleJobEndsIfTheDiskIsFull checks that a job that hardly uses the disk continues while the disk is
// nearly full, and ends when less is free.
func TestS3IdleJobEndsIfTheDiskIsFull(t *testing.T) {
	j := newLimited(t, limits.Grant{Slot: limits.Limits{Disk: 1 << 40}}, 1, "shell", "echo ready; exec sleep 3600")
	disk := newDisk(t, 256<<20)
	j.peers[0].launch.scratch = disk
	j.start()
	await(j.links[0], (*jobpb.FromPeer).GetOutput)
	g := newGuard(j.hosted(0), j.instances(0))
	fill := func(leave int64) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(disk, "the-owners"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err == nil {
			_, err = f.Write(make([]byte, machine.DiskFree(disk)-leave))
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fill(LeastFree * 3 / 4)
	if g.check(); g.aboveFloor() <= 0 {
		t.Errorf("%d bytes above the floor", g.aboveFloor())
	}
	if g.most = LeastFree + 1; g.aboveFloor() >= 0 {
		t.Errorf("%d bytes above the floor of a job that uses much", g.aboveFloor())
	}
	fill(LeastFree / 4)
	if e := j.links[0].exited(view.Process{}); e.Reason != errDiskFull.Error() {
		t.Errorf("ended with %v", e)
	}
	j.gone()
}

// TestS3SuspendedJobEndsIfTheDiskIsFull checks that the floor of free space applies to a suspended job too.
func TestS3SuspendedJobEndsIfTheDiskIsFull(t *testing.T) {
	j := newLimited(t, limits.Grant{Slot: limits.Limits{Disk: 1 << 40}}, 1, "shell", "echo ready; exec sleep 3600")
	disk := newDisk(t, 256<<20)
	j.peers[0].launch.scratch = disk
	j.start()
	await(j.links[0], (*jobpb.FromPeer).GetOutput)
	j.peers[0].launch.Pause(Pause{Rule: "battery", Most: time.Hour})
	j.eventually("the program is suspended", func() bool { return j.suspendedPrograms() == 1 })
	if err := writeZeros(filepath.Join(disk, "the-owners"), int(machine.DiskFree(disk)-LeastFree/4)); err != nil {
		t.Fatal(err)
	}
	if e := j.links[0].exited(view.Process{}); e.Reason != errDiskFull.Error() {
		t.Errorf("ended with %v", e)
	}
	j.gone()
}

// newDisk returns a folder on a separate disk of the given size, in memory.
func newDisk(t *testing.T, size int64) string {
	t.Helper()
	folder := t.TempDir()
	if err := unix.Mount("p2pmpi-test", folder, "tmpfs", unix.MS_NODEV, fmt.Sprintf("size=%d,mode=711", size)); err != nil {
		skip.Lacks(t, fmt.Sprintf("the right to mount: %v", err))
	}
	t.Cleanup(func() { unix.Unmount(folder, unix.MNT_DETACH) })
	return folder
}

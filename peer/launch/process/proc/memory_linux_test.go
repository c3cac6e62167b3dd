package proc

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	roles["weigh"] = func(args []string) int { return weighAs(args[0]) }
}

// hideInFile fills an in-memory file that is left open, or is mapped and never touched.
func hideInFile(mapped bool) error {
	fd, err := unix.MemfdCreate("x", 0)
	if err != nil {
		return err
	}
	if _, err = unix.Write(fd, make([]byte, hidden)); err != nil || !mapped {
		return err
	}
	_, err = unix.Mmap(fd, 0, hidden, unix.PROT_READ, unix.MAP_SHARED)
	return errors.Join(err, unix.Close(fd))
}

// mapNamed maps a file that has a name.
func mapNamed() error {
	err := os.WriteFile("f", make([]byte, hidden), 0o600)
	f, opened := os.OpenFile("f", os.O_RDWR, 0)
	b, mapped := syscall.Mmap(int(f.Fd()), 0, hidden, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	return errors.Join(err, opened, mapped)
}

// sharedOf returns the shared memory of a process, which is passed twice.
func sharedOf(pid int) (sum int64) {
	for _, n := range MemoryOf([]int{pid, pid}, false).shared {
		sum += n
	}
	return sum
}

// TestSharedMemoryCountsOnce checks that shared memory counts once, whether or not it is in page tables.
// Files on disk are not memory.
func TestSharedMemoryCountsOnce(t *testing.T) {
	for how, want := range map[string]int64{
		"memory, open": hidden, "memory, mapped and closed": hidden, "memory, shared": hidden, "a file with a name": 0,
	} {
		t.Run(how, func(t *testing.T) {
			pid := hiding(t, t.TempDir(), how)
			if got := sharedOf(pid); got != want {
				t.Errorf("shares %d bytes, want %d", got, want)
			}
			for _, divided := range []bool{false, true} {
				m := MemoryOf([]int{pid}, divided)
				if m.own == 0 || m.Total() != m.own+want || want > 0 && m.Unseen() < want-m.touched {
					t.Errorf("got %+v, want %d bytes beside its own", m, want)
				}
			}
			if TouchedBy([]int{pid}) == 0 {
				t.Error("TouchedBy returned 0")
			}
		})
	}
}

// weighAs prints the shared memory of a process that an ordinary user can see.
func weighAs(pid string) int {
	n, _ := strconv.Atoi(pid)
	if err := becomeNobody(); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(sharedOf(n))
	return 0
}

// TestSharedMemoryCountsAsMapped checks that the mapped size counts if the peer cannot see the actual size.
func TestSharedMemoryCountsAsMapped(t *testing.T) {
	for _, how := range []string{"memory, shared by a user", "memory, closed by a user"} {
		t.Run(how, func(t *testing.T) {
			pid := hiding(t, t.TempDir(), how)
			said, err := helper("weigh", strconv.Itoa(pid)).CombinedOutput()
			if err != nil || strings.TrimSpace(string(said)) != strconv.Itoa(hidden) {
				t.Errorf("got %q, %v; want %d", said, err, hidden)
			}
		})
	}
}

func TestUnionCountsOnce(t *testing.T) {
	for want, all := range map[int64][]extent{
		0:  nil,
		8:  {{0, 8}, {0, 8}},
		12: {{8, 12}, {0, 8}, {2, 4}},
		10: {{100, 106}, {0, 4}},
		20: {{0, 10}, {5, 20}},
	} {
		if got := union(all); got != want {
			t.Errorf("%v: got %d, want %d", all, got, want)
		}
	}
}

// TestSharedRingCountsOnceInTotal checks that a ring shared by eight processes of a job counts once in total.
func TestSharedRingCountsOnceInTotal(t *testing.T) {
	ring, alone := file{1, 1}, file{1, 2}
	have := make(map[int]Memory)
	for i := range 8 {
		have[i] = Memory{own: 10, shared: map[file]int64{ring: 800}}
	}
	have[0].shared[alone] = 5
	got := Parts(have)
	if want := []int64{110, 110, 110, 110, 110, 110, 110, 115}; !slices.Equal(slices.Sorted(maps.Values(got)), want) || got[0] != 115 {
		t.Errorf("got %v", got)
	}
}

func TestSwappedMemoryCounts(t *testing.T) {
	if got := privateOf([]byte("Name:\tx\nRssAnon:\t     92 kB\nVmSwap:\t      8 kB\n")); got != 100<<10 {
		t.Errorf("got %d bytes", got)
	}
}

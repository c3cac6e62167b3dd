package supervisor

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// TestCensus checks that only the processes below a supervisor are found, including indirect children.
func TestCensus(t *testing.T) {
	parent := exec.Command("sh", "-c", "sleep 3600 & echo; wait; sleep 3600")
	out, err := parent.StdoutPipe()
	if err == nil {
		err = parent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range descendants(parent.Process.Pid) {
			if p, err := os.FindProcess(pid); err == nil {
				p.Kill()
			}
		}
		parent.Process.Kill()
		parent.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	// This test is the supervisor of sh.
	self, _ := os.FindProcess(os.Getpid())
	us, other := &Process{cmd: &exec.Cmd{Process: self}}, &Process{cmd: &exec.Cmd{Process: parent.Process}}
	var c Census
	for range 2 { // the second time it knows them
		got := c.Take([]*Process{us})[us]
		if len(got) < 2 || !slices.Contains(got, parent.Process.Pid) {
			t.Errorf("below this test: %v; want %d and its child", got, parent.Process.Pid)
		}
		slices.Sort(got)
		want := descendants(os.Getpid())
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if got := new(Census).Take([]*Process{other})[other]; len(got) != 1 || got[0] == parent.Process.Pid {
		t.Errorf("below %d: %v; want its child", parent.Process.Pid, got)
	}
}

// TestSettleParents checks that a process whose parent is not found is settled later.
func TestSettleParents(t *testing.T) {
	p := new(Process)
	supervisors := map[int]*Process{10: p}
	now := map[int]int{2: 0, 11: 10}
	parents := map[int]int{12: 11, 13: 12, 14: 2, 15: 99, 16: 17, 17: 16, 18: 0, 19: 10}
	for _, pid := range []int{12, 13, 14, 15, 16, 17, 18, 19} {
		settle(pid, parents, now, supervisors)
	}
	want := map[int]int{2: 0, 11: 10, 12: 10, 13: 10, 14: 0, 18: 0, 19: 10}
	if len(now) != len(want) {
		t.Errorf("got %v, want %v", now, want)
	}
	for pid, whose := range want {
		if got, ok := now[pid]; !ok || got != whose {
			t.Errorf("%d: got %d, %t; want %d", pid, got, ok, whose)
		}
	}
}

// TestPossiblyAssignedProcessIDs checks that IDs between two times may have been assigned, and all IDs
// after many assignments.
func TestPossiblyAssignedProcessIDs(t *testing.T) {
	cases := []struct {
		from, until numbers
		may, not    []int
	}{
		{numbers{100, 5000}, numbers{103, 5003}, []int{101, 103}, []int{1, 100, 104, 32000}},
		{numbers{32700, 5000}, numbers{310, 5080}, []int{1, 310, 32701, 32767}, []int{311, 32700}},
		{numbers{100, 5000}, numbers{100, 5000}, nil, []int{99, 100, 101}},
		{numbers{100, 5000}, numbers{101, 5000 + maxAssigned}, []int{1, 100, 32000}, nil},
		{numbers{}, numbers{103, 5003}, []int{1, 100, 32000}, nil},
		{numbers{0, 5000}, numbers{0, 5003}, []int{1, 100, 32000}, nil},
		{numbers{100, 0}, numbers{103, 0}, []int{1, 100, 32000}, nil},
	}
	for _, c := range cases {
		for _, pid := range c.may {
			if !c.from.mayHaveAssigned(pid, c.until) {
				t.Errorf("%v to %v: ID %d counts as not assigned", c.from, c.until, pid)
			}
		}
		for _, pid := range c.not {
			if c.from.mayHaveAssigned(pid, c.until) {
				t.Errorf("%v to %v: ID %d counts as assigned", c.from, c.until, pid)
			}
		}
	}
}

// TestCensusRereadsReusedProcessIDs checks that a reused process ID is looked up again, and that
// others are not.
func TestCensusRereadsReusedProcessIDs(t *testing.T) {
	child := exec.Command("sleep", "3600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		child.Process.Kill()
		child.Wait()
	})
	self, _ := os.FindProcess(os.Getpid())
	us, pid := &Process{cmd: &exec.Cmd{Process: self}}, child.Process.Pid
	below := func(from numbers) bool {
		c := Census{supervisorOf: map[int]int{pid: 0}, until: from} // another process had it
		return slices.Contains(c.Take([]*Process{us})[us], pid)
	}
	now := assignedNow()
	if now.last == 0 || now.given == 0 {
		skip.Lacks(t, "a kernel that reports the assigned process IDs")
	}
	if !below(numbers{last: pid - 1, given: now.given}) {
		t.Error("a reused process ID was not looked up again")
	}
	for range 5 { // other programs may start many meanwhile
		if now := assignedNow(); !below(now) {
			return
		}
	}
	t.Error("a known process was looked up again")
}

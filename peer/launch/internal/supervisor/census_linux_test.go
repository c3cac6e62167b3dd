package supervisor

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

// TestCensus: those below a supervisor, with their children, and nobody else.
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

// TestCensusOfThoseThatChange: whose parent is not to be found yet is settled later.
func TestCensusOfThoseThatChange(t *testing.T) {
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

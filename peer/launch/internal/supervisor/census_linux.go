package supervisor

import (
	"os"
	"strconv"
)

// A Census knows of each process of the machine below which supervisor it is, if any. It asks for
// that once of each: nobody goes from one to another. The zero Census knows nobody.
type Census struct{ whose map[int]int } // the supervisor, of each process; 0: none

// Take returns the processes below each of some supervisors: the program and all that it has started.
func (c *Census) Take(of []*Process) map[*Process][]int {
	now := make(map[int]int, len(c.whose)+16)
	supervisors := make(map[int]*Process, len(of))
	for _, p := range of {
		supervisors[p.cmd.Process.Pid] = p
	}
	parents := make(map[int]int) // of those that are new
	for _, pid := range everybody() {
		if whose, known := c.whose[pid]; known && (whose == 0 || supervisors[whose] != nil) {
			now[pid] = whose
		} else if child, of, ok := parent("/proc/" + strconv.Itoa(pid) + "/stat"); ok {
			parents[child] = of
		}
	}
	for pid := range parents {
		settle(pid, parents, now, supervisors)
	}
	c.whose = now
	below := make(map[*Process][]int)
	for pid, whose := range now {
		if p := supervisors[whose]; p != nil {
			below[p] = append(below[p], pid)
		}
	}
	return below
}

// settle finds out whose a new process is: its parent's. One whose parent has just gone is settled
// the next time.
func settle(pid int, parents, now map[int]int, supervisors map[int]*Process) (whose int, ok bool) {
	if whose, ok = now[pid]; ok || pid == 0 {
		return whose, true
	}
	of, isNew := parents[pid]
	if !isNew {
		return 0, false
	}
	if whose, ok = of, true; supervisors[of] == nil {
		delete(parents, pid) // should they go round in a circle, as they change
		whose, ok = settle(of, parents, now, supervisors)
	}
	if ok {
		now[pid] = whose
	}
	return whose, ok
}

// everybody returns all processes.
func everybody() (all []int) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

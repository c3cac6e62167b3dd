package supervisor

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// A Census knows of each process of the machine below which supervisor it is, if any. It asks for
// that once of each: nobody goes from one to another. A number that the kernel may have given to
// somebody else meanwhile is asked again. The zero Census knows nobody.
type Census struct {
	whose map[int]int // the supervisor, of each process; 0: none
	until numbers     // given when they were asked
}

// numbers tells how far the kernel has come, which gives them to processes and threads one after
// the other and begins again where there are no more. The zero numbers are not known.
type numbers struct {
	last  int // given, in the peer's PID namespace
	given int // how many, by this kernel
}

// mostGiven is after how many it may have come round: not before there are this many, less those
// that are taken, which are passed over.
const mostGiven = 1 << 12

// givenNow asks the kernel. Where it has no such file, nothing is known.
func givenNow() (n numbers) {
	n.last = lastGiven()
	stat, _ := os.ReadFile("/proc/stat")
	_, rest, _ := bytes.Cut(stat, []byte("\nprocesses "))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n.given, _ = strconv.Atoi(string(line))
	return n
}

// lastGiven returns the number that was given last in this process's PID namespace.
func lastGiven() int {
	text, _ := os.ReadFile("/proc/sys/kernel/ns_last_pid")
	last, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return last
}

// mayHaveGiven reports whether a number may have been given between two times.
func (n numbers) mayHaveGiven(pid int, until numbers) bool {
	switch {
	case n.last == 0 || n.given == 0 || until.last == 0 || until.given-n.given >= mostGiven:
		return true
	case n.last <= until.last:
		return n.last < pid && pid <= until.last
	default: // they have begun again
		return n.last < pid || pid <= until.last
	}
}

// Take returns the processes below each of some supervisors: the program and all that it has started.
func (c *Census) Take(of []*Process) map[*Process][]int {
	now := make(map[int]int, len(c.whose)+16)
	supervisors := make(map[int]*Process, len(of))
	for _, p := range of {
		supervisors[p.cmd.Process.Pid] = p
	}
	parents := make(map[int]int) // of those that are new
	until := givenNow()
	for _, pid := range everybody() {
		whose, known := c.whose[pid]
		if known && (whose == 0 || supervisors[whose] != nil) && !c.until.mayHaveGiven(pid, until) {
			now[pid] = whose
		} else if child, of, ok := parent("/proc/" + strconv.Itoa(pid) + "/stat"); ok {
			parents[child] = of
		}
	}
	for pid := range parents {
		settle(pid, parents, now, supervisors)
	}
	c.whose, c.until = now, until
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

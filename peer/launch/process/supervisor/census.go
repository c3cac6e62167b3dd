package supervisor

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Census maps each process of the machine to the supervisor above it, if any. It looks up each process
// only once, since a process cannot move to another supervisor. It looks up an ID again if the kernel may
// have reused it. The zero Census is empty.
type Census struct {
	supervisorOf map[int]int // supervisor of each process, or 0 for none
	until        numbers     // process IDs assigned at the time of the lookup
}

// numbers records how many process IDs the kernel has assigned. The kernel assigns them to processes and
// threads in order, and wraps around at the end. The zero value means unknown.
type numbers struct {
	last  int // last ID assigned in the peer's PID namespace
	given int // number of IDs that this kernel has assigned since boot
}

// maxAssigned is the number of assignments after which the IDs may have wrapped around. A wrap-around takes
// at least this many, less the IDs in use, which are skipped.
const maxAssigned = 1 << 12

// assignedNow reads the current numbers; fields are 0 if the kernel does not provide them.
func assignedNow() (n numbers) {
	n.last = lastAssigned()
	stat, _ := os.ReadFile("/proc/stat")
	_, rest, _ := bytes.Cut(stat, []byte("\nprocesses "))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n.given, _ = strconv.Atoi(string(line))
	return n
}

// lastAssigned returns the ID assigned last in this process's PID namespace.
func lastAssigned() int {
	text, _ := os.ReadFile("/proc/sys/kernel/ns_last_pid")
	last, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return last
}

// mayHaveAssigned reports whether an ID may have been assigned between two times.
func (n numbers) mayHaveAssigned(pid int, until numbers) bool {
	switch {
	case n.last == 0 || n.given == 0 || until.last == 0 || until.given-n.given >= maxAssigned:
		return true
	case n.last <= until.last:
		return n.last < pid && pid <= until.last
	default: // the IDs have wrapped around
		return n.last < pid || pid <= until.last
	}
}

// Take returns the processes below each of the given supervisors: the program and its descendants.
func (c *Census) Take(of []*Process) map[*Process][]int {
	now := make(map[int]int, len(c.supervisorOf)+16)
	supervisors := make(map[int]*Process, len(of))
	for _, p := range of {
		supervisors[p.cmd.Process.Pid] = p
	}
	parents := make(map[int]int) // of new processes
	until := assignedNow()
	for _, pid := range allPIDs() {
		whose, known := c.supervisorOf[pid]
		if known && (whose == 0 || supervisors[whose] != nil) && !c.until.mayHaveAssigned(pid, until) {
			now[pid] = whose
		} else if child, of, ok := parent("/proc/" + strconv.Itoa(pid) + "/stat"); ok {
			parents[child] = of
		}
	}
	for pid := range parents {
		settle(pid, parents, now, supervisors)
	}
	c.supervisorOf, c.until = now, until
	below := make(map[*Process][]int)
	for pid, whose := range now {
		if p := supervisors[whose]; p != nil {
			below[p] = append(below[p], pid)
		}
	}
	return below
}

// settle determines the supervisor of a new process, which is that of its parent. If the parent has just
// ended, the next Take settles it.
func settle(pid int, parents, now map[int]int, supervisors map[int]*Process) (whose int, ok bool) {
	if whose, ok = now[pid]; ok || pid == 0 {
		return whose, true
	}
	of, isNew := parents[pid]
	if !isNew {
		return 0, false
	}
	if whose, ok = of, true; supervisors[of] == nil {
		delete(parents, pid) // prevents endless recursion if the parents form a cycle, since they change meanwhile
		whose, ok = settle(of, parents, now, supervisors)
	}
	if ok {
		now[pid] = whose
	}
	return whose, ok
}

func allPIDs() (all []int) {
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

// parent reads a process ID and its parent's from a stat file: "pid (name) state ppid ...", where the name
// may contain any character.
func parent(stat string) (pid, ppid int, ok bool) {
	b, err := os.ReadFile(stat)
	if err != nil {
		return 0, 0, false // the process has ended
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 2 {
		return 0, 0, false
	}
	pid, err1 := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
	ppid, err2 := strconv.Atoi(string(fields[1]))
	return pid, ppid, err1 == nil && err2 == nil
}

package proc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// userTick is the unit of times in stat files, whatever the kernel's own tick.
const userTick = 10 * time.Millisecond

// CPUTime returns the processor time of the processes, including children that they have waited for.
func CPUTime(pids []int) time.Duration {
	user, system := CPUTimes(pids)
	return user + system
}

// CPUTimes returns the processor time of the processes outside and in the kernel, including children that they
// have waited for.
func CPUTimes(pids []int) (user, system time.Duration) {
	for _, pid := range pids {
		t := timesOf(pid)
		user, system = user+t[0]+t[2], system+t[1]+t[3]
	}
	return user, system
}

// CPUTimesOfChildren returns the processor time, outside and in the kernel, of those children of a process that
// it has waited for.
func CPUTimesOfChildren(pid int) (user, system time.Duration) {
	t := timesOf(pid)
	return t[2], t[3]
}

// timesOf returns the times of a process, or zeros if it has ended: user, system, children's user, children's
// system.
func timesOf(pid int) (t [4]time.Duration) {
	stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name may contain any character
	if len(fields) < 15 {
		return t
	}
	for i, f := range fields[11:15] {
		ticks, _ := strconv.ParseInt(string(f), 10, 64)
		t[i] = time.Duration(ticks) * userTick
	}
	return t
}

// CPUStatsOf returns the processor time of the processes until now. If the kernel does not report it, the
// times are zero, and no process counts as starved.
func CPUStatsOf(pids []int, now time.Time) CPUStats {
	t := CPUStats{At: now}
	for _, pid := range pids {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		for _, file := range threads {
			text, _ := os.ReadFile(file)
			var ran, waited int64 // nanoseconds
			fmt.Sscan(string(text), &ran, &waited)
			t.Ran, t.Waited = t.Ran+time.Duration(ran), t.Waited+time.Duration(waited)
		}
	}
	return t
}

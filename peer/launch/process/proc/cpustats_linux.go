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
func CPUTime(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name may contain any character
		if len(fields) < 15 {
			continue // it has ended
		}
		for _, f := range fields[11:15] { // user, system, children's user, children's system
			ticks, _ := strconv.ParseInt(string(f), 10, 64)
			sum += time.Duration(ticks) * userTick
		}
	}
	return sum
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

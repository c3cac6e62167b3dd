package proc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Stopped returns those of the processes that a signal has stopped, with all their threads.
func Stopped(pids []int) (stopped []int) {
	for _, pid := range pids {
		if isStopped(pid) {
			stopped = append(stopped, pid)
		}
	}
	return stopped
}

func isStopped(pid int) (stopped bool) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, file := range threads {
		status, _ := os.ReadFile(file)
		_, state, _ := bytes.Cut(status, []byte("\nState:\t"))
		switch {
		case len(state) == 0 || bytes.ContainsRune([]byte("ZX"), rune(state[0])): // it has ended
		case state[0] != 'T':
			return false
		default:
			stopped = true
		}
	}
	return stopped
}

// Resume resumes stopped processes.
func Resume(pids []int) {
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGCONT) // an error means that it has ended
	}
}

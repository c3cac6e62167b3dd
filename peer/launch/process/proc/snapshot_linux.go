package proc

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// SnapshotOf returns the current state of the processes.
func SnapshotOf(pids []int) Snapshot {
	s := make(Snapshot)
	for _, pid := range pids {
		if p := stateOf(pid); len(p.threads) > 0 || p.incomplete {
			s[pid] = p
		}
	}
	return s
}

// stateOf returns the state of a process's threads, without those that have ended.
func stateOf(pid int) state {
	s := state{threads: make(map[int]thread)}
	tasks := filepath.Join("/proc", strconv.Itoa(pid), "task")
	folder, err := os.Open(tasks)
	if err != nil {
		s.incomplete = short(err)
		return s
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	s.incomplete = short(err)
	for _, name := range names {
		status, err := os.ReadFile(filepath.Join(tasks, name, "status"))
		s.incomplete = s.incomplete || short(err)
		does, ok := activityIn(status)
		if id, err := strconv.Atoi(name); err == nil && ok {
			s.threads[id] = thread{does, field(status, "voluntary_ctxt_switches:") + field(status, "nonvoluntary_ctxt_switches:")}
			shared, own := pending(status, "ShdPnd:"), pending(status, "SigPnd:")
			s.parent = int(field(status, "PPid:"))
			s.stopPending = s.stopPending || shared&bit(syscall.SIGSTOP) != 0
			s.dying = s.dying || (shared|own)&bit(syscall.SIGKILL) != 0 || field(status, "CoreDumping:") != 0 ||
				!bytes.Contains(status, []byte("\nVmSize:"))
		}
	}
	return s
}

// short reports whether an inspection failed for lack of descriptors or memory. The inspected process may
// still exist.
func short(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// activityIn returns the activity in a thread's status file. ok is false if the thread has ended.
func activityIn(status []byte) (a activity, ok bool) {
	_, state, _ := bytes.Cut(status, []byte("\nState:\t"))
	if len(state) == 0 {
		return running, false
	}
	switch state[0] {
	case 'T', 't':
		return stopped, true
	case 'D':
		return blocked, true
	case 'S':
		return sleeping, true
	case 'Z', 'X', 'x':
		return running, false
	}
	return running, true
}

// pending returns the set of signals pending for a process or for a thread, as read from its status file.
func pending(status []byte, name string) uint64 {
	_, rest, _ := bytes.Cut(status, []byte("\n"+name+"\t"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	signals, _ := strconv.ParseUint(string(line), 16, 64)
	return signals
}

func bit(s syscall.Signal) uint64 { return 1 << (s - 1) }

// Stop sends SIGSTOP to each process, and to each thread that has not stopped. A signal to a process is
// taken by one of its threads for all, and that thread may be waiting in a system call.
func (s Snapshot) Stop() {
	for pid, does := range s {
		syscall.Kill(pid, syscall.SIGSTOP) // an error means that it has ended
		for id, t := range does.threads {
			if t.activity != stopped {
				unix.Tgkill(pid, id, syscall.SIGSTOP)
			}
		}
	}
}

// Resume resumes stopped processes.
func Resume(pids []int) {
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGCONT)
	}
}

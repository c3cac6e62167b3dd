package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Enter moves this process into the given groups, one per hierarchy.
func Enter(folders []string) error {
	var errs []error
	for _, f := range folders {
		errs = append(errs, write(f, "cgroup.procs", "0"))
	}
	return errors.Join(errs...)
}

// probe checks whether a group can be created, and removes it again.
func probe(folder string) error {
	if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Remove(folder)
}

// write writes a value of a group. It creates no file: a missing file means that the kernel does not
// support the value.
func write(folder, name, value string) error {
	f, err := os.OpenFile(filepath.Join(folder, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// number reads a number from a file, by name if the file has several; 0 means unknown.
func number(folder, file, name string) int64 {
	text, _ := os.ReadFile(filepath.Join(folder, file))
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if name == "" && len(fields) == 1 || len(fields) == 2 && fields[0] == name {
			n, _ := strconv.ParseInt(fields[len(fields)-1], 10, 64)
			return n
		}
	}
	return 0
}

// processesIn returns the processes of a group and of the groups below it.
func processesIn(folder string) (all []int) {
	filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		all = append(all, processesAt(path)...)
		return nil
	})
	return slices.DeleteFunc(all, func(pid int) bool { return pid <= 0 }) // 0 stands for a process of another namespace
}

// processesAt returns the processes of a group, without those below it.
func processesAt(folder string) (all []int) {
	text, _ := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// removeTimeout bounds the time in which the processes of a group must exit.
const removeTimeout = 5 * time.Second

// removeTree kills the processes of a group and of those below it, and removes the groups. It fails if this
// process is among them.
func removeTree(folder string) error {
	_ = write(folder, "cpu.idle", "0") // killed processes need processor time to exit
	for wait, end := time.Millisecond, time.Now().Add(removeTimeout); ; wait = min(2*wait, 50*time.Millisecond) {
		err := removeAll(folder)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if time.Now().After(end) {
			return err
		}
		for _, pid := range processesIn(folder) {
			if pid == os.Getpid() {
				return err
			}
			syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(wait)
	}
}

// removeAll removes a group and those below it, if they contain no processes.
func removeAll(folder string) error {
	below, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, d := range below {
		if d.IsDir() {
			if err := removeAll(filepath.Join(folder, d.Name())); err != nil {
				return err
			}
		}
	}
	return os.Remove(folder)
}

// RemoveEmpty removes the groups of a process and of its job, as far as they contain no other process.
// Supervisors call it after their process has ended.
func RemoveEmpty(folders []string) {
	for _, f := range folders {
		_ = os.Remove(f) // succeeds for the last process in the group
	}
}

package grid

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// KillProcess kills the program of a process, given as "rank.replica", of the only running job, and
// returns the time. The process's peer and supervisor survive.
func (g *Grid) KillProcess(process string) (time.Time, error) {
	pid, _, err := g.find(process)
	if err != nil {
		return time.Time{}, err
	}
	return time.Now(), os.NewSyscallError("kill", syscall.Kill(pid, syscall.SIGKILL))
}

// KillPeerOf kills the peer that runs the process, and returns the time.
func (g *Grid) KillPeerOf(process string) (time.Time, error) {
	_, p, err := g.find(process)
	if err != nil {
		return time.Time{}, err
	}
	p.killed = true
	return time.Now(), p.cmd.Process.Kill()
}

// find finds a process by its working directory.
func (g *Grid) find(process string) (pid int, at *peerProcess, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, nil, err
	}
	for _, e := range entries {
		folder, _ := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		program, _ := os.Readlink(filepath.Join("/proc", e.Name(), "exe"))
		if filepath.Base(folder) != process || filepath.Base(program) == "p2pboot" { // skip its supervisor
			continue
		}
		for _, p := range g.peers {
			if strings.HasPrefix(folder, filepath.Join(p.home, "scratch")+"/") {
				pid, err := strconv.Atoi(e.Name())
				return pid, p, err
			}
		}
	}
	return 0, nil, fmt.Errorf("process %s runs on no peer", process)
}

// Replace boots killed peers again, with their homes.
func (g *Grid) Replace(ctx context.Context) error {
	for i, p := range g.peers {
		if !p.killed {
			continue
		}
		p.cmd.Wait() // the error only reports that it was killed
		again, err := g.boot(ctx, filepath.Base(p.home), g.later())
		if err != nil {
			return err
		}
		g.peers[i] = again
	}
	return nil
}

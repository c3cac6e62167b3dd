//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/internal/unruly"
	"github.com/p2pmpi/p2pmpi/mpj"
)

// A bomb that is not stopped gives up at these limits.
const (
	mostChildren    = 1000
	mostMemory      = 1 << 30
	mostDisk        = 512 << 20
	mostDescriptors = 50_000
)

// child is the main function of a child process: it only sleeps.
func child() { time.Sleep(time.Hour) }

// forkBomb starts as many children as it can.
func forkBomb(*mpj.World) error {
	for n := range mostChildren {
		if err := exec.CommandContext(context.Background(), "sleep", "3600").Start(); err != nil {
			return stay("fork: stopped at %d: %q", n, err)
		}
	}
	return stay("fork: got %d children", mostChildren)
}

// memoryBomb writes to as much memory as it can get.
func memoryBomb(*mpj.World) error {
	const step = 16 << 20
	for n := 0; n < mostMemory; n += step {
		b, err := unix.Mmap(-1, 0, step, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return stay("memory: stopped at %d MiB: %q", n>>20, err)
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
	return stay("memory: got %d MiB", mostMemory>>20)
}

// diskBomb writes as many files of 16 MiB as it can.
func diskBomb(*mpj.World) error {
	block := make([]byte, 1<<20)
	for n := 0; n < mostDisk; n += 16 << 20 {
		f, err := os.Create(fmt.Sprintf("bomb-%d", n>>20))
		for i := 0; err == nil && i < 16; i++ {
			_, err = f.Write(block)
		}
		if err != nil {
			return stay("disk: stopped at %d MiB: %q", n>>20, err)
		}
		f.Close()
	}
	return stay("disk: got %d MiB", mostDisk>>20)
}

// mappedBomb writes, through memory mappings, to files without a name or an open descriptor.
func mappedBomb(*mpj.World) error {
	const size = 8 << 20
	for n := 0; n < mostDisk; n += size {
		f, err := nameless(n, size)
		if err != nil {
			return stay("mapped: stopped at %d MiB: %q", n>>20, err)
		}
		b, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return stay("mapped: stopped at %d MiB: %q", n>>20, err)
		}
		f.Close()
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
	return stay("mapped: got %d MiB", mostDisk>>20)
}

// undumpableBomb keeps nameless files open in a process whose descriptors only root may inspect.
func undumpableBomb(*mpj.World) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return stay("undumpable: stopped at once: %q", err)
	}
	block := make([]byte, 8<<20)
	var kept []*os.File
	for n := 0; n < mostDisk; n += len(block) {
		f, err := nameless(n, 0)
		if err == nil {
			_, err = f.Write(block)
		}
		if err != nil {
			return stay("undumpable: stopped at %d MiB: %q", n>>20, err)
		}
		kept = append(kept, f)
	}
	return stay("undumpable: got %d MiB in %d files", mostDisk>>20, len(kept))
}

// nameless returns an open file of the given size without a name.
func nameless(n int, size int64) (*os.File, error) {
	f, err := os.Create(fmt.Sprintf("bomb-%d", n))
	if err != nil {
		return nil, err
	}
	return f, errors.Join(os.Remove(f.Name()), f.Truncate(size))
}

// swapFolders repeatedly exchanges unreadable directories with links to one of the owner's files, while the peer
// checks the directories' permissions for disk accounting. It writes files to provoke that accounting. It prints
// how often the peer has given itself permission to read a directory, which root does not need.
func swapFolders(world *mpj.World) error {
	exchanges, opened := 0, 0
	begun := time.Now()
	for took := time.Duration(0); took < 3*time.Second || opened == 0 && took < 10*time.Second; took = time.Since(begun) {
		if err := os.WriteFile("room", make([]byte, 8<<20), 0o600); err != nil {
			return err
		}
		n, m, err := swapOnce()
		if err != nil {
			return err
		}
		exchanges, opened = exchanges+n, opened+m
		fmt.Printf("swap: %d exchanges, %d folders were inspected\n", exchanges, opened)
		if err := os.Remove("room"); err != nil {
			return err
		}
	}
	return world.Finalize()
}

// swapOnce creates directories and links, exchanges them for a while, and removes them.
func swapOnce() (exchanges, opened int, err error) {
	const pairs = 100
	for n := range pairs {
		if err := errors.Join(os.Mkdir(fmt.Sprint("folder-", n), 0), os.Symlink(*outside+"/secret", fmt.Sprint("way-", n))); err != nil {
			return exchanges, opened, err
		}
	}
	for n := range 20 * pairs {
		n %= pairs
		if err := unix.Renameat2(unix.AT_FDCWD, fmt.Sprint("folder-", n), unix.AT_FDCWD, fmt.Sprint("way-", n), unix.RENAME_EXCHANGE); err != nil {
			return exchanges, opened, err
		}
		exchanges++
	}
	for n := range pairs {
		folder := fmt.Sprint("folder-", n)
		if info, err := os.Lstat(folder); err == nil && info.Mode().Perm() != 0 {
			opened++
		}
		if err := errors.Join(os.Remove(folder), os.Remove(fmt.Sprint("way-", n))); err != nil {
			return exchanges, opened, err
		}
	}
	return exchanges, opened, nil
}

// wokenBomb writes ever more to one file that it constantly moves. Timers and other processes
// resume all its processes whenever the peer stops them.
func wokenBomb(*mpj.World) error {
	err := errors.Join(os.Mkdir("a", 0o700), os.Mkdir("z", 0o700), os.WriteFile("a/big", nil, 0o600), unruly.StartResumeTimers(), unruly.StartResumers(2))
	if err != nil {
		return err
	}
	f, err := os.OpenFile("a/big", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	for n := 0; n < mostDisk; n += len(block) {
		if _, err := f.Write(block); err != nil {
			return stay("woken: stopped at %d KiB: %q", n>>10, err)
		}
		if err := errors.Join(os.Rename("a/big", "z/big"), os.Rename("z/big", "a/big")); err != nil {
			return stay("woken: stopped at %d KiB: %q", n>>10, err)
		}
	}
	return stay("woken: got %d MiB", mostDisk>>20)
}

// hopBomb starts chains of processes. Each process writes a little, moves the file, starts the next
// process, and ends. A block is large enough that a few hundred hops exceed the limit: on a busy
// machine, programs get a small share of the processors.
func hopBomb(*mpj.World) error {
	const chains = 4
	block := make([]byte, 64<<10)
	err := errors.Join(os.Mkdir("a", 0o700), os.Mkdir("z", 0o700))
	for n := range chains {
		from, to := fmt.Sprint("a/", n), fmt.Sprint("z/", n)
		err = errors.Join(err, os.WriteFile(from, nil, 0o600), unruly.StartRenamer(from, to, block, mostDisk/chains/len(block)))
	}
	if err != nil {
		return err
	}
	return stay("hop: they hop")
}

// descriptorBomb opens as many descriptors as it can.
func descriptorBomb(*mpj.World) error {
	for n := range mostDescriptors {
		if _, err := unix.Open(os.DevNull, unix.O_RDONLY, 0); err != nil {
			return stay("descriptors: stopped at %d: %q", n, err)
		}
	}
	return stay("descriptors: got %d", mostDescriptors)
}

// stay prints the result of a bomb, and keeps what the bomb holds.
func stay(format string, a ...any) error {
	fmt.Printf(format+"\n", a...)
	time.Sleep(time.Hour)
	return nil
}

// outputFlood prints without end.
func outputFlood(*mpj.World) error {
	line := make([]byte, 1<<16)
	for i := range line {
		line[i] = 'x'
	}
	line[len(line)-1] = '\n'
	for {
		if _, err := os.Stdout.Write(line); err != nil {
			return err
		}
	}
}

// sleepOn finalizes and then does not exit.
func sleepOn(world *mpj.World) error {
	err := world.Finalize()
	fmt.Println("sleep: finalized")
	time.Sleep(time.Hour)
	return err
}

// daemon leaves a grandchild in its own session, and ends.
func daemon(world *mpj.World) error {
	if err := leaveGhost(); err != nil {
		return err
	}
	return world.Finalize()
}

// late leaves such a grandchild after finalizing.
func late(world *mpj.World) error {
	if err := world.Finalize(); err != nil {
		return err
	}
	return leaveGhost()
}

// leaveGhost starts a ghost, and returns when it runs.
func leaveGhost() error {
	// The shell exits at once, so its child becomes an orphan.
	c := exec.CommandContext(context.Background(), "sh", "-c", `setsid "$0" "$@" </dev/null >/dev/null 2>&1 &`, self(), "-home="+*home, "-outside="+*outside, "ghost")
	if err := c.Run(); err != nil {
		return fmt.Errorf("leave a ghost: %w", err)
	}
	for range 400 {
		if _, err := os.Stat("haunted"); err == nil {
			fmt.Println("ghost: is there")
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("the ghost did not start")
}

// ghost ignores signals, and writes outside the scratch directory long after the program has ended.
func ghost() {
	ignoreSignals()
	if err := os.WriteFile("haunted", nil, 0o600); err != nil {
		return
	}
	time.Sleep(500 * time.Millisecond)
	plantPermanently()
	time.Sleep(time.Hour)
}

// ignoreSignals ignores all signals that can be ignored.
func ignoreSignals() { ossignal.Ignore() }

// plantPermanently writes a file wherever it can, and leaves it there.
func plantPermanently() {
	for _, dir := range []string{*home, *outside} {
		os.WriteFile(filepath.Join(dir, planted), nil, 0o666)
	}
}

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// runDetached starts this command again in its own session, with its messages in <home>/log. It returns
// when the peer is ready or has failed.
func runDetached(ctx context.Context, home string, args []string, stdout, stderr io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return command.Fail(command.Unavailable, fmt.Errorf("find the file of this program: %w", err), "")
	}
	log, err := homedir.OpenLog(home)
	if err != nil {
		return explain(ctx, err)
	}
	defer log.Close()
	start, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return command.Fail(command.Unavailable, fmt.Errorf("open log: %w", err), "")
	}
	// The child outlives this process, and therefore ctx.
	child := exec.CommandContext(context.WithoutCancel(ctx), self, append(slices.Clone(args), "--detach=false")...)
	child.Stderr = log
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		return command.Fail(command.Unavailable, fmt.Errorf("start in the background: %w", err), "")
	}
	stop := context.AfterFunc(ctx, func() { child.Process.Signal(syscall.SIGTERM) })
	defer stop()
	ready, err := bufio.NewReader(out).ReadString('\n')
	if err == nil && strings.HasPrefix(ready, "ready ") {
		io.WriteString(stdout, ready)
		return child.Process.Release()
	}
	return failedDetached(child, log, start, stderr)
}

// failedDetached copies the child's messages to stderr and returns a failure with its status.
func failedDetached(child *exec.Cmd, log *os.File, start int64, stderr io.Writer) error {
	err := cmp.Or(child.Wait(), errors.New("no message"))
	if is, statErr := log.Stat(); statErr == nil && is.Size() < start {
		start = 0 // the log was rotated, see homedir.BoundLog
	}
	io.Copy(stderr, io.NewSectionReader(log, start, 1<<20))
	exit, ok := errors.AsType[*exec.ExitError](err)
	if ok && exit.ExitCode() > 0 {
		return command.Fail(exit.ExitCode(), errors.New(""), "")
	}
	return command.Fail(command.Unavailable, fmt.Errorf("the background peer exited before it was ready: %w", err), "")
}

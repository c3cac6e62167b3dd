package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/sandbox"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/scratch"
)

// The names under which the peer starts its own executable, as argv[0].
const (
	superviseName = "p2pmpi-supervisor"
	stageName     = "p2pmpi-stage"
	leadName      = "p2pmpi-session"
)

// The supervisor's descriptors after the three standard ones. The program has its control socket under the same
// number, and none of the other descriptors.
const (
	socketFD = 3 + iota
	lifeFD
	reportFD
)

// An order is what the peer writes into the life pipe. Every byte after it is a request.
type order struct {
	Plan     sandbox.Plan
	As       string // argv[0] of the program, or empty for its path
	Stdin    string
	Args     []string
	Settings []string
	Limits   Limits
	Apart    bool // leave the program's session once it runs
	Probe    bool // run no program, only find out which of the plan's mechanisms work
}

// A request is a byte that the peer sends to the supervisor.
type request byte

const (
	askAlive request = '?' // to report whether the program is stopped
	suspend  request = '!' // to stop the program and all its descendants
)

// started is the supervisor's first report.
type started struct {
	PID   int            // as the supervisor sees it
	Error string         // why the program does not run
	Found sandbox.Report // result of a probe
}

// A status is one of the supervisor's later reports: that it is alive, that it has sent SIGSTOP to all
// processes, or how the program ended. The last one reports that no descendant is left.
type status struct {
	Stopped   bool  `json:",omitempty"` // a signal has stopped the program
	Suspended bool  `json:",omitempty"`
	Exit      *Exit `json:",omitempty"`
	Gone      bool  `json:",omitempty"`
}

// Main runs this process as a supervisor if it was started as one; the caller must then exit with the
// status. Every command that starts processes calls Main first in main, before it parses flags or opens
// files.
func Main() (status int, ours bool) {
	switch os.Args[0] {
	case superviseName:
		return supervise(), true
	case stageName:
		return stage(), true
	case leadName:
		return lead(), true
	}
	return 0, false
}

// supervise runs the supervisor until its program and all descendants are gone.
func supervise() int {
	// The kernel sends PDEATHSIG when the thread that forked ends, so this goroutine keeps its thread until
	// the process exits.
	runtime.LockOSThread()
	life, report := os.NewFile(lifeFD, "life"), json.NewEncoder(os.NewFile(reportFD, "report"))
	if err := closeOnExec(); err != nil {
		report.Encode(started{Error: err.Error()})
		return 1
	}
	var o order
	if err := json.NewDecoder(life).Decode(&o); err != nil {
		return 1 // the peer was killed between two calls
	}
	if err := sandbox.Guard(); err != nil {
		report.Encode(started{Error: "guard the supervisor: " + err.Error()})
		return 1
	}
	if o.Probe {
		report.Encode(probe(o))
		return 0
	}
	pid, err := start(o)
	if err != nil {
		report.Encode(started{Error: err.Error()})
		return 1
	}
	if o.Apart {
		leaveSession()
	}
	report.Encode(started{PID: pid})
	detach()
	watch(pid, listen(life), exitReportTimeout, func(w status) { report.Encode(w) })
	o.Limits.remove()
	scratch.RemoveProcess(o.Plan.Scratch) // no process is left to report an error to
	return 0
}

// listen delivers the peer's requests. The channel is closed when the life pipe is closed.
func listen(life io.Reader) <-chan request {
	asked := make(chan request)
	go func() { // ends with the life pipe
		defer close(asked)
		for b := make([]byte, 1); ; {
			if _, err := life.Read(b); err != nil {
				return
			}
			asked <- request(b[0])
		}
	}()
	return asked
}

// exitReportTimeout bounds the delay of the program's exit report while its descendants are killed, which
// may be in long system calls. It is less than the second within which all peers must learn of the exit
// (F2).
const exitReportTimeout = 800 * time.Millisecond

// watch returns when the program and all its descendants are gone, and the life pipe is closed. It reports
// the program's exit once no descendant is left, or after timeout.
func watch(pid int, asked <-chan request, timeout time.Duration, report func(status)) {
	c := reap(pid)
	for {
		select {
		case e := <-c.exited:
			sweep(pid, c.childless, time.After(timeout)) // no descendant may change files while they are collected
			report(status{Exit: &e})
			sweep(pid, c.childless, nil)
			report(status{Gone: true})
			for range asked { // an answer now would come after the last report
			}
			return
		case q, held := <-asked:
			if held && q == suspend {
				signalAll(pid, syscall.SIGSTOP)
				report(status{Suspended: true})
				continue
			}
			if held {
				report(status{Stopped: c.stopped.Load()})
				continue
			}
			sweep(pid, c.childless, nil)
			e := <-c.exited
			report(status{Exit: &e}) // the peer may still run and have closed only the life pipe
			return
		}
	}
}

// sweep kills the program and all its descendants. It returns when the last one is reaped, or when givenUp
// fires. Each pass kills all processes that exist, so a process that forks faster than one pass is caught
// by a later one.
func sweep(program int, childless <-chan struct{}, givenUp <-chan time.Time) {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		signalAll(program, syscall.SIGKILL)
		select {
		case <-childless:
			return
		case <-givenUp:
			return
		case <-time.After(wait):
		}
	}
}

// children tracks the program, and the orphans that it leaves.
type children struct {
	stopped   atomic.Bool   // the program is stopped, as by SIGSTOP
	exited    chan Exit     // receives the program's exit
	childless chan struct{} // closed when no child is left, and none can appear
}

// reap reaps all children, and tracks whether the program is stopped.
func reap(program int) *children {
	c := &children{exited: make(chan Exit, 1), childless: make(chan struct{})}
	go func() { // ends with the last child
		defer close(c.childless)
		for {
			var status syscall.WaitStatus
			var usage syscall.Rusage
			pid, err := syscall.Wait4(-1, &status, syscall.WUNTRACED|syscall.WCONTINUED, &usage)
			switch {
			case err == syscall.EINTR:
			case err != nil: // ECHILD
				return
			case pid != program:
			case status.Stopped(), status.Continued():
				c.stopped.Store(status.Stopped())
			default:
				e := exitOf(status)
				e.Memory = resident(usage)
				c.exited <- e
			}
		}
	}()
	return c
}

// exitOf converts the wait status of a program.
func exitOf(s syscall.WaitStatus) Exit {
	if s.Signaled() {
		return Exit{Code: -1, Signal: s.Signal().String()}
	}
	return Exit{Code: s.ExitStatus()}
}

// start forks a stage, and waits until the stage has become the program.
func start(o order) (pid int, err error) {
	pid, word, err := forkStage(o)
	if err == nil && len(word) > 0 {
		err = errors.New(string(word))
	}
	return pid, err
}

// probe forks a stage that tries the sandbox mechanisms, and returns what it has found.
func probe(o order) (s started) {
	pid, word, err := forkStage(o)
	if err == nil {
		syscall.Wait4(pid, nil, 0, nil)
		err = json.Unmarshal(word, &s.Found)
	}
	if err != nil {
		s.Error = err.Error()
	}
	return s
}

// forkStage forks a stage and returns its output, which is empty if the stage has become the program.
func forkStage(o order) (pid int, word []byte, err error) {
	if err := adoptOrphans(); err != nil {
		return 0, nil, fmt.Errorf("become subreaper: %w", err)
	}
	if err := leaveTerminal(); err != nil {
		return 0, nil, fmt.Errorf("leave the terminal: %w", err)
	}
	if err := sandbox.HandOver(o.Plan); err != nil {
		return 0, nil, fmt.Errorf("hand over files: %w", err)
	}
	stdin, err := os.Open(o.Stdin)
	if err != nil {
		return 0, nil, err
	}
	defer stdin.Close()
	failure, failed, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer failure.Close()
	hears, says, err := os.Pipe()
	if err != nil {
		failed.Close()
		return 0, nil, err
	}
	defer says.Close()
	attributes := programAttributes()
	if o.Plan.Means.Namespaces {
		sandbox.Inner(attributes)
	}
	pid, err = o.Limits.forkWithin(func() (int, error) {
		return syscall.ForkExec(executable, []string{stageName}, &syscall.ProcAttr{
			Dir:   o.Plan.Scratch,
			Env:   append(environment(o.Plan.Scratch), o.Settings...),
			Files: []uintptr{stdin.Fd(), 1, 2, socketFD, failed.Fd(), hears.Fd()},
			Sys:   attributes,
		})
	})
	failed.Close()
	hears.Close()
	if err != nil {
		return 0, nil, fmt.Errorf("fork in %s: %w", o.Plan.Scratch, err)
	}
	if err := json.NewEncoder(says).Encode(o); err != nil {
		return 0, nil, fmt.Errorf("send the order to the stage: %w", err)
	}
	word, err = io.ReadAll(io.LimitReader(failure, maxStatus))
	return pid, word, err
}

// maxStatus bounds a stage's output, in bytes.
const maxStatus = 4096

// environment returns the program's environment. PATH is for programs that run the machine's tools. The
// folders are the program's own.
func environment(folder string) []string {
	return []string{
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"LANG=C.UTF-8",
		"HOME=" + folder,
		"TMPDIR=" + folder,
		proclink.FDVariable + "=" + strconv.Itoa(socketFD),
	}
}

// detach closes the program's output and control socket in this process, so that they end when the program
// ends.
func detach() {
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		dup2(int(null.Fd()), 1)
		dup2(int(null.Fd()), 2)
		null.Close()
	}
	syscall.Close(socketFD)
}

package supervisor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/confine/sandbox"
)

// startTimeout bounds the time from fork to the program's first instruction. Loaded machines need seconds.
const startTimeout = 30 * time.Second

// A Command describes a program to run, and how it is connected.
type Command struct {
	Title   string   // job and process, for an owner who lists processes
	Program string   // absolute path of an executable file
	As      string   // name of the program in place of its path, or empty
	Stdin   string   // path of the file that is its standard input, or empty for none
	Args    []string // without the program's own name
	// Settings are added to the program's environment, as NAME=value.
	Settings []string
	Scratch  string // absolute path of its working folder, which the supervisor removes
	Limits   Limits
	// Sandbox holds the sandbox mechanisms around the program. This machine must have all of them, see Probe.
	Sandbox sandbox.Means
	// Readable are additional files and folders of the machine that the program may read.
	Readable []string
	Session  *Session // session in which the program runs, or nil for the peer's

	Socket, Stdout, Stderr *os.File // the process's ends; Start leaves them open

	Answered func(stopped bool) // called after each answer to Ask, with whether the program is stopped
}

// An Exit describes how a program ended.
type Exit struct {
	Code   int    // exit status, or -1
	Signal string // signal that killed it, or empty
	Memory int64  // peak resident memory in bytes, or 0 if unknown
}

// A Process is a program under its supervisor.
type Process struct {
	cmd      *exec.Cmd
	life     *os.File
	report   *os.File
	killOnce sync.Once

	scratch   string
	group     int // the program's process group, or 0 if it is in a PID namespace
	exit      Exit
	done      chan struct{} // closed when exit is known
	suspended chan struct{} // receives each answer to Suspend
	gone      bool          // the supervisor has reported that no descendant is left
	over      chan struct{} // closed after the supervisor's last report
}

// Start starts a program and returns when the program runs, or has certainly failed to start. An error is meant
// for the submitter. After an error only the scratch folder is left.
func Start(c Command) (*Process, error) { return startBy(c, time.Now().Add(startTimeout)) }

func startBy(c Command, deadline time.Time) (*Process, error) {
	defer c.Session.expedite()()
	p, err := fork(c, deadline)
	if err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	report := json.NewDecoder(p.report)
	if err := p.command(c, report, deadline); err != nil {
		p.cmd.Process.Kill() // the program, if it exists, ends with the supervisor
		p.cmd.Wait()
		p.life.Close()
		p.report.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("not started within %v; the machine may be overloaded: %w", startTimeout, err)
		}
		return nil, fmt.Errorf("start program: %w", err)
	}
	go p.watch(report, c.Answered) // ends with the supervisor
	return p, nil
}

// fork starts the supervisor with its two pipes.
func fork(c Command, deadline time.Time) (*Process, error) {
	lifeRead, lifeWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer lifeRead.Close()
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		lifeWrite.Close()
		return nil, err
	}
	defer reportWrite.Close()
	b := supervisorSpec{Title: c.Title, Namespaces: c.Sandbox.Namespaces}
	cmd, err := c.Session.start(b, [supervisorFiles]*os.File{c.Stdout, c.Stderr, c.Socket, lifeRead, reportWrite}, deadline)
	if err != nil {
		lifeWrite.Close()
		reportRead.Close()
		return nil, err
	}
	return &Process{cmd: cmd, life: lifeWrite, report: reportRead, scratch: c.Scratch, suspended: make(chan struct{}, 1), done: make(chan struct{}), over: make(chan struct{})}, nil
}

// A supervisorSpec describes a supervisor to be started.
type supervisorSpec struct {
	Title      string
	Namespaces bool // whether it is the first process of a PID namespace
}

// supervisorFiles is the number of a supervisor's files: standard output and error, control socket, life
// and report.
const supervisorFiles = 5

// supervisor returns the command that starts the supervisor.
func (b supervisorSpec) supervisor(files [supervisorFiles]*os.File) *exec.Cmd {
	cmd := &exec.Cmd{
		Path:        executable,
		Args:        []string{superviseName, b.Title},
		Env:         []string{"GOMAXPROCS=1"}, // nothing of the owner's; the supervisor mostly waits
		Dir:         "/",                      // keeps no file system busy
		Stdout:      files[0],
		Stderr:      files[1],
		ExtraFiles:  files[2:],
		SysProcAttr: supervisorAttributes(),
	}
	if b.Namespaces {
		sandbox.Outer(cmd.SysProcAttr)
	}
	return cmd
}

// command sends the supervisor its order and waits until it is carried out.
func (p *Process) command(c Command, report *json.Decoder, deadline time.Time) error {
	p.life.SetWriteDeadline(deadline)
	p.report.SetReadDeadline(deadline)
	o := order{Plan: c.plan(), As: c.As, Stdin: cmp.Or(c.Stdin, os.DevNull), Args: c.Args, Settings: c.Settings, Limits: c.Limits, Apart: c.Session != nil}
	if err := json.NewEncoder(p.life).Encode(o); err != nil {
		return err
	}
	var s started
	if err := report.Decode(&s); err != nil {
		return err
	}
	if s.Error != "" {
		return errors.New(s.Error)
	}
	if !c.Sandbox.Namespaces {
		p.group = s.PID
	}
	// Both pipes are used for as long as the program runs.
	return errors.Join(p.life.SetWriteDeadline(time.Time{}), p.report.SetReadDeadline(time.Time{}))
}

func (c Command) plan() sandbox.Plan {
	return sandbox.Plan{Means: c.Sandbox, Program: c.Program, Scratch: c.Scratch, Readable: c.Readable, Tool: c.As != ""}
}

// watch handles the supervisor's reports until the program and all its descendants have ended.
func (p *Process) watch(report *json.Decoder, answered func(stopped bool)) {
	defer close(p.over)
	exited := false
	for {
		var w status
		if report.Decode(&w) != nil {
			break
		}
		switch {
		case w.Exit != nil:
			p.exit, exited = *w.Exit, true
			close(p.done)
		case w.Gone:
			p.gone = true
			return
		case w.Suspended:
			p.suspended <- struct{}{} // Suspend waits for each
		default:
			answered(w.Stopped)
		}
	}
	if exited {
		return
	}
	defer close(p.done)
	// The supervisor was killed: by the program, by the owner, or because it did not answer. The kernel
	// then kills the program. Its descendants may still exist, unless the supervisor was the first process
	// of their namespace.
	if p.group > 0 {
		syscall.Kill(-p.group, syscall.SIGKILL)
		KillStale(p.scratch)
	}
	p.exit = Exit{Code: -1, Signal: syscall.SIGKILL.String()}
}

// Ask asks the supervisor whether the program is stopped. Command.Answered receives the answer, unless the
// supervisor itself is stopped: it would not notice that the program or the peer ends.
func (p *Process) Ask() { p.send(askAlive) }

func (p *Process) send(r request) { p.life.Write([]byte{byte(r)}) } // an error means that the supervisor has ended

// Supervisor returns the process ID of the supervisor. It is valid until Close has returned.
func (p *Process) Supervisor() int { return p.cmd.Process.Pid }

// KillSupervisor kills a supervisor that does not answer, and the program with it.
func (p *Process) KillSupervisor() { p.cmd.Process.Kill() }

// Wait waits until the program has ended, and returns how.
func (p *Process) Wait() Exit {
	<-p.done
	return p.exit
}

// Gone waits until no descendant of the program is left, as far as the system reports. It returns ctx's
// error, or errUnknown if the supervisor ended first.
func (p *Process) Gone(ctx context.Context) error {
	select {
	case <-p.over:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !p.gone {
		return errUnknown
	}
	return nil
}

var errUnknown = errors.New("the supervisor ended without reporting the program's end")

// Kill ends the program without waiting. It closes the life pipe and resumes a stopped supervisor. The
// supervisor then kills the program with its descendants, and removes the scratch folder. Kill kills a
// supervisor that has not ended the program within sweepTimeout. The kernel then kills the program, and in
// a PID namespace all its descendants, whatever they do.
func (p *Process) Kill() { p.killWithin(sweepTimeout) }

func (p *Process) killWithin(timeout time.Duration) {
	p.killOnce.Do(func() {
		p.life.Close()
		p.cmd.Process.Signal(syscall.SIGCONT) // an error means that the supervisor has ended
		force := time.AfterFunc(timeout, p.KillSupervisor)
		go func() { // ends with the program
			<-p.done
			force.Stop()
		}()
	})
}

// sweepTimeout is how long a supervisor may take to kill its program and remove the scratch folder. If it takes
// longer, its own program is obstructing it.
const sweepTimeout = 10 * time.Second

// Close kills the program, if it still runs, and returns when its supervisor has ended.
func (p *Process) Close() {
	p.Kill()
	force := time.AfterFunc(sweepTimeout, func() { p.cmd.Process.Kill() })
	p.cmd.Wait() // the exit status adds nothing to the report
	force.Stop()
	<-p.over
	p.report.Close()
}

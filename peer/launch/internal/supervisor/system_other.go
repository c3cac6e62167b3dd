//go:build !linux

package supervisor

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/internal/sandbox"
)

// executable is this program.
var executable, _ = os.Executable()

// Own is that as a Command's Program.
var Own = executable

// confine does nothing here; see confine_linux.go.
func confine(sandbox.Plan, Limits) error { return nil }

// A Session is none: sessions do not compete here.
type Session struct{}

// NewSession returns nil.
func NewSession() *Session { return nil }

func (*Session) hurry() (settled func()) { return func() {} }

// Close does nothing.
func (*Session) Close() {}

// start starts a supervisor.
func (*Session) start(b birth, files [supervisorFiles]*os.File, _ time.Time) (*exec.Cmd, error) {
	cmd := b.supervisor(files)
	return cmd, cmd.Start()
}

func lead() int { return 1 }

func leaveSession() {}

// adoptOrphans does nothing: only Linux and FreeBSD have subreapers.
func adoptOrphans() error { return nil }

// supervisorAttributes keeps the terminal's Ctrl-C from the supervisor.
func supervisorAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// leaveTerminal has nothing to do: the supervisor's session has no terminal.
func leaveTerminal() error { return nil }

// programAttributes puts the program into a process group of its own.
func programAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// resident is not known: systems count it in different units.
func resident(syscall.Rusage) int64 { return 0 }

func dup2(from, to int) error { return syscall.Dup2(from, to) }

// closeOnExec keeps the supervisor's own descriptors from the program.
func closeOnExec() error {
	for _, fd := range []int{lineFD, lifeFD, reportFD} {
		syscall.CloseOnExec(fd)
	}
	return nil
}

// sweep kills the program's process group and returns when the program is
// reaped, or when it has been given up. Descendants that left the group stay: see doc.go.
func sweep(program int, childless <-chan struct{}, givenUp <-chan time.Time) {
	for {
		killAll(program)
		select {
		case <-childless:
			return
		case <-givenUp:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// killAll kills the program's process group.
func killAll(program int) { syscall.Kill(-program, syscall.SIGKILL) }

// haltAll stops nobody: there are no PID namespaces.
func haltAll() Born { return 0 }

// KillStale does nothing: which processes run in a folder is not to be had
// portably.
func KillStale(string) {}

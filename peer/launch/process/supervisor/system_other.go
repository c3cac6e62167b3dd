//go:build !linux

package supervisor

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/confine/sandbox"
)

// executable is the path of this program.
var executable, _ = os.Executable()

// Own is this program, as the Program of a Command.
var Own = executable

// confine does nothing here; see confine_linux.go.
func confine(sandbox.Plan, Limits) error { return nil }

// A Session is unused: the scheduler does not distinguish sessions here.
type Session struct{}

// NewSession returns nil.
func NewSession() *Session { return nil }

func (*Session) expedite() (settled func()) { return func() {} }

// Close does nothing.
func (*Session) Close() {}

func (*Session) start(b supervisorSpec, files [supervisorFiles]*os.File, _ time.Time) (*exec.Cmd, error) {
	cmd := b.supervisor(files)
	return cmd, cmd.Start()
}

func lead() int { return 1 }

func leaveSession() {}

// adoptOrphans does nothing: only Linux and FreeBSD have subreapers.
func adoptOrphans() error { return nil }

// supervisorAttributes shields the supervisor from the terminal's Ctrl-C.
func supervisorAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// leaveTerminal does nothing: the supervisor's session has no terminal.
func leaveTerminal() error { return nil }

// programAttributes puts the program into its own process group.
func programAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// resident returns 0, unknown: systems use different units.
func resident(syscall.Rusage) int64 { return 0 }

func dup2(from, to int) error { return syscall.Dup2(from, to) }

// closeOnExec marks the supervisor's own descriptors as close-on-exec.
func closeOnExec() error {
	for _, fd := range []int{socketFD, lifeFD, reportFD} {
		syscall.CloseOnExec(fd)
	}
	return nil
}

// signalAll sends a signal to the program's process group. Descendants that left the group do not receive it: see doc.go.
func signalAll(program int, s syscall.Signal) { syscall.Kill(-program, s) }

// KillStale does nothing: there is no portable way to find the processes that run in a folder.
func KillStale(string) {}

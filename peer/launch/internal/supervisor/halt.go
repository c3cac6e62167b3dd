package supervisor

import "errors"

// Born is the number that was given last to a process or thread of a PID namespace: as long as it stays,
// nobody was started there. 0 is not known: the kernel has no checkpoints (CONFIG_CHECKPOINT_RESTORE).
type Born int

// ErrEnded is why Halt stops nobody.
var ErrEnded = errors.New("the program has ended")

// Walled reports whether the program is in a PID namespace.
func (p *Process) Walled() bool { return p.group == 0 }

// Halt stops the program and all that it has started, at one moment, and returns who was born last before
// they were; only of a program that is Walled. They go on when somebody sends each SIGCONT, as they may do
// themselves. The error is ErrEnded of a program that has ended. Halt waits for the supervisor: whoever watches
// over it ends one that does not answer (KillSupervisor), and so Halt.
func (p *Process) Halt() (Born, error) {
	p.life.Write([]byte{byte(halt)}) // an error means that it is over
	select {
	case born := <-p.halted:
		return born, nil
	case <-p.done:
		return 0, ErrEnded
	}
}

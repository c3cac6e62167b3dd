package supervisor

import (
	"errors"
	"time"
)

// Born is the number that was given last to a process or thread of a PID namespace: as long as it stays,
// nobody was started there. 0 is not known.
type Born int

// Why Halt stops nobody.
var (
	ErrEnded  = errors.New("the program has ended")
	errSilent = errors.New("the supervisor does not answer")
)

// haltTimeout is how long a supervisor may take to stop all. Loaded machines need seconds.
const haltTimeout = 20 * time.Second

// Walled reports whether the program is in a PID namespace.
func (p *Process) Walled() bool { return p.group == 0 }

// Halt stops the program and all that it has started, at one moment, and returns who was born last before
// they were; only of a program that is Walled. They go on when somebody sends each SIGCONT, as they may do
// themselves. The error is ErrEnded of a program that has ended.
func (p *Process) Halt() (Born, error) {
	if p.silent {
		return 0, errSilent // what it says now may be the answer to an earlier question
	}
	p.life.Write([]byte{byte(halt)}) // an error means that it is over
	late := time.NewTimer(haltTimeout)
	defer late.Stop()
	select {
	case born := <-p.halted:
		return born, nil
	case <-p.done:
		return 0, ErrEnded
	case <-late.C:
		p.silent = true
		return 0, errSilent
	}
}

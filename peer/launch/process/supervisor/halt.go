package supervisor

import "errors"

// LastPID is the ID most recently assigned to a process or thread of a PID namespace. As long as it is
// unchanged, none was created there. The value 0 means that the ID is unknown, because the kernel lacks
// CONFIG_CHECKPOINT_RESTORE.
type LastPID int

// errEnded is the error of Halt for a program that has ended.
var errEnded = errors.New("the program has ended")

// InPIDNamespace reports whether the program is in a PID namespace.
func (p *Process) InPIDNamespace() bool { return p.group == 0 }

// Halt stops the program and all its descendants at one moment, and returns the ID assigned last before
// that. The program must be in a PID namespace. Each process resumes on SIGCONT, which the processes may
// also send to each other. Halt returns errEnded if the program has ended. Halt waits for the supervisor's
// answer: the caller must ensure that a supervisor that does not answer is killed (KillSupervisor), which
// also ends Halt.
func (p *Process) Halt() (LastPID, error) {
	p.life.Write([]byte{byte(halt)}) // an error means that the supervisor has ended
	select {
	case born := <-p.halted:
		return born, nil
	case <-p.done:
		return 0, errEnded
	}
}

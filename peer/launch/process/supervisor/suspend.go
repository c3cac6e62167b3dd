package supervisor

// Suspend stops the program and all its descendants. In a PID namespace the kernel stops all of them at one
// moment, including those that are being created. A system call in progress completes first. Each process
// resumes on SIGCONT, which the processes can also send to each other and, by a timer, to themselves.
//
// Suspend returns when the signal was sent, or when the program has ended. The caller must ensure that a
// supervisor that does not answer is killed (KillSupervisor). Only one goroutine may call Suspend.
func (p *Process) Suspend() {
	p.send(suspend)
	select {
	case <-p.suspended:
	case <-p.done:
	}
}

package supervisor

// Suspend stops the program and all its descendants. In a PID namespace the kernel stops all of them at one
// moment, including those that are being created. A system call in progress completes first. Each process
// resumes on SIGCONT, which the processes can also send to each other and, by a timer, to themselves.
func (p *Process) Suspend() { p.send(suspend) }

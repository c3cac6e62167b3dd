package grid

import (
	"os/exec"
	"syscall"
)

// EndWithParent makes the process that cmd starts end if this one is killed.
func EndWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

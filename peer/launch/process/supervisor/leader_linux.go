package supervisor

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"syscall"
)

// ownNiceness is the file that sets the niceness of this process's session, if the kernel schedules by
// session.
const ownNiceness = "/proc/self/autogroup"

// sessionNiceness is the niceness of the programs' session. Together, programs get about a thirtieth of the
// processors when other processes want all of them.
const sessionNiceness = "15"

// A forkResult is a session leader's answer to a supervisorSpec.
type forkResult struct{ PID int } // 0 if no supervisor was started

// maxSpec bounds a supervisorSpec and its answer, in bytes.
const maxSpec = 4096

// lead runs the session leader until its peer ends.
func lead() int {
	conn, err := net.FileConn(os.NewFile(socketFD, "session"))
	if err != nil {
		return 1
	}
	asked := conn.(*net.UnixConn)
	text, rights := make([]byte, maxSpec), make([]byte, syscall.CmsgSpace(supervisorFiles*4))
	for {
		n, m, _, _, err := asked.ReadMsgUnix(text, rights)
		if err != nil || n == 0 {
			return 0
		}
		var b forkResult
		b.PID, _ = forkSupervisor(text[:n], rights[:m]) // after an error PID is 0, and the peer starts the supervisor itself
		answer, _ := json.Marshal(b)
		if _, err := asked.Write(answer); err != nil {
			return 0
		}
	}
}

// forkSupervisor forks a supervisor whose parent is the peer, and returns its process ID.
func forkSupervisor(text, rights []byte) (pid int, err error) {
	var b supervisorSpec
	if err := json.Unmarshal(text, &b); err != nil {
		return 0, err
	}
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return 0, errors.Join(err, errors.New("received no files"))
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != supervisorFiles {
		return 0, errors.Join(err, errors.New("received unexpected files"))
	}
	var files [supervisorFiles]*os.File
	for i, fd := range fds {
		files[i] = os.NewFile(uintptr(fd), "file of a supervisor")
		defer files[i].Close()
	}
	cmd := b.supervisor(files)
	cmd.SysProcAttr.Setpgid = false // a process group leader cannot leave the session
	cmd.SysProcAttr.Cloneflags |= syscall.CLONE_PARENT
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid = cmd.Process.Pid // Release clears it
	return pid, cmd.Process.Release()
}

// leaveSession moves this process to a new session, which has the usual weight. It has no effect if this
// process was started in the peer's session, where it leads a process group.
func leaveSession() { _, _ = syscall.Setsid() }

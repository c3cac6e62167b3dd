package supervisor

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"syscall"
)

// ownNiceness is where the kernel is told how nice this process's session is to others, if it has sessions compete.
const ownNiceness = "/proc/self/autogroup"

// sessionNiceness is that of programs: together they get a thirtieth of the processors when
// somebody else wants them all.
const sessionNiceness = "15"

// A newborn is a leader's answer to a birth.
type newborn struct{ PID int } // 0: there is none

// maxBirth bounds a birth and the answer, in bytes.
const maxBirth = 4096

// lead is the life of a leader. It ends with its peer.
func lead() int {
	conn, err := net.FileConn(os.NewFile(lineFD, "session"))
	if err != nil {
		return 1
	}
	asked := conn.(*net.UnixConn)
	words, rights := make([]byte, maxBirth), make([]byte, syscall.CmsgSpace(supervisorFiles*4))
	for {
		n, m, _, _, err := asked.ReadMsgUnix(words, rights)
		if err != nil || n == 0 {
			return 0
		}
		var b newborn
		b.PID, _ = deliver(words[:n], rights[:m]) // with an error there is none, and the peer tries itself
		answer, _ := json.Marshal(b)
		if _, err := asked.Write(answer); err != nil {
			return 0
		}
	}
}

// deliver forks a supervisor, whose parent is the peer, and returns its number.
func deliver(words, rights []byte) (pid int, err error) {
	var b birth
	if err := json.Unmarshal(words, &b); err != nil {
		return 0, err
	}
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil || len(messages) != 1 {
		return 0, errors.Join(err, errors.New("no files came along"))
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != supervisorFiles {
		return 0, errors.Join(err, errors.New("other files came along"))
	}
	var files [supervisorFiles]*os.File
	for i, fd := range fds {
		files[i] = os.NewFile(uintptr(fd), "file of a supervisor")
		defer files[i].Close()
	}
	cmd := b.supervisor(files)
	cmd.SysProcAttr.Setpgid = false // who leads a group cannot leave the session
	cmd.SysProcAttr.Cloneflags |= syscall.CLONE_PARENT
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid = cmd.Process.Pid // Release forgets it
	return pid, cmd.Process.Release()
}

// leaveSession has this process go to a session of its own, which has the usual weight. It stays in
// the peer's if it was started there, where it leads a group.
func leaveSession() { _, _ = syscall.Setsid() }

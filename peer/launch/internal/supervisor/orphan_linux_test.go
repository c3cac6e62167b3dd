package supervisor

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func init() { roles["orphan"] = tellOfOrphan }

// tellOfOrphan is a supervisor whose program leaves a child, and says whether that has been killed
// when the program's end is reported.
func tellOfOrphan() int {
	out, in, err := os.Pipe()
	if err == nil {
		err = adoptOrphans()
	}
	if err != nil {
		return 1
	}
	program, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "sleep 3600 </dev/null >/dev/null 2>&1 & echo $!"}, &syscall.ProcAttr{
		Files: []uintptr{0, in.Fd(), 2},
	})
	if err != nil {
		return 1
	}
	orphan, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return 1
	}
	asked := make(chan struct{})
	watch(program, asked, func(word) {
		fmt.Println(doomed(strings.TrimSpace(orphan)))
		close(asked) // the peer lets go
	})
	return 0
}

// doomed reports whether a process has got SIGKILL.
func doomed(pid string) bool {
	status, _ := os.ReadFile("/proc/" + pid + "/status")
	if len(status) == 0 || strings.Contains(string(status), "\nState:\tZ") {
		return true
	}
	_, pending, _ := strings.Cut(string(status), "\nShdPnd:\t")
	pending, _, _ = strings.Cut(pending, "\n")
	signals, _ := strconv.ParseUint(pending, 16, 64)
	_, own, _ := strings.Cut(string(status), "\nSigPnd:\t")
	own, _, _ = strings.Cut(own, "\n")
	more, _ := strconv.ParseUint(own, 16, 64)
	return (signals|more)&(1<<(syscall.SIGKILL-1)) != 0
}

// TestNobodyChangesFilesOnceTheProgramsEndIsTold: the peer may then read them, as itself.
func TestNobodyChangesFilesOnceTheProgramsEndIsTold(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), roleVariable+"=orphan")
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "true\n" {
		t.Errorf("it has said %q: %v", out, err)
	}
}

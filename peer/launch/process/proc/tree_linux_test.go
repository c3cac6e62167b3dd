package proc

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/unruly"
)

func init() {
	roles["hide"] = func(args []string) int { return hide(args[0]) }
	roles["inspect"] = func(args []string) int { return inspectAs(args[0], args[1]) }
}

// hidden is the number of bytes that hide conceals.
const hidden = 4 << 20

// hide conceals bytes in its working folder, or in memory, and sleeps.
func hide(how string) int {
	if err := hideAway(how); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("hidden")
	time.Sleep(time.Hour) // until it is killed
	return 0
}

func hideAway(how string) error {
	switch how {
	case "mapped":
		return unruly.HideMapped("f", hidden)
	case "mapped by a user":
		return errors.Join(unruly.HideMapped("f", hidden), becomeNobody(), unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0))
	case "memory, open", "memory, mapped and closed":
		return hideInFile(how != "memory, open")
	case "memory, shared":
		return unruly.HideShared(hidden)
	case "memory, shared by a user":
		return errors.Join(unruly.HideShared(hidden), becomeNobody(), unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0))
	case "memory, closed by a user":
		return errors.Join(hideInFile(true), becomeNobody(), unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0))
	case "a file with a name":
		return mapNamed()
	}
	fd, err := unix.Open("f", unix.O_CREAT|unix.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, make([]byte, hidden)); err != nil {
		return err
	}
	if how == "twice" {
		return errors.Join(unruly.HideMapped("g", hidden), unix.Unlink("f"))
	}
	if err := unix.Unlink("f"); err != nil {
		return err
	}
	switch how {
	case "behind a thread that has ended":
		endFirstThread()
	case "from its peer":
		return errors.Join(becomeNobody(), unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
	}
	return nil
}

// becomeNobody makes this process run as an ordinary user.
func becomeNobody() error {
	if os.Getuid() != 0 {
		return nil
	}
	return errors.Join(syscall.Setresgid(65534, 65534, 65534), syscall.Setresuid(65534, 65534, 65534))
}

// endFirstThread ends the main thread, whose files /proc shows, while other threads continue.
func endFirstThread() {
	debug.SetGCPercent(-1) // a collection would wait for that thread
	for range 64 {
		go func() { // until this process ends
			runtime.LockOSThread()
			if syscall.Gettid() == os.Getpid() {
				syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
			}
			time.Sleep(time.Hour) // until it is killed
		}()
	}
	for {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/status", os.Getpid()))
		if strings.Contains(string(status), "\nState:\tZ") {
			return
		}
		time.Sleep(time.Millisecond) // interval between polls
	}
}

// hiding starts a process that hides something.
func hiding(t *testing.T, folder, how string) int {
	t.Helper()
	cmd := helper("hide", how)
	cmd.Dir = folder
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if said, _ := bufio.NewReader(out).ReadString('\n'); said != "hidden\n" {
		t.Fatalf("%s: %q", how, said)
	}
	return cmd.Process.Pid
}

// helper returns a command that runs this binary in a role.
func helper(role string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	return cmd
}

// TestDeletedFilesAreFound checks that deleted files are found, however a process uses them.
func TestDeletedFilesAreFound(t *testing.T) {
	for _, how := range []string{"open", "mapped", "twice", "behind a thread that has ended"} {
		t.Run(how, func(t *testing.T) {
			if (how == "mapped" || how == "twice") && os.Getuid() != 0 {
				skip.Lacks(t, "root, who may look at mapped files")
			}
			folder := t.TempDir()
			pid := hiding(t, folder, how)
			got, err := Inspect([]int{pid, pid}, folder, true)
			want := int64(hidden)
			if how == "twice" {
				want *= 2
			}
			if err != nil || got.Nameless < want || got.Nameless > want+1<<20 {
				t.Errorf("got %d bytes, %v; want %d", got.Nameless, err, want)
			}
			if got, err := Inspect([]int{pid}, folder, false); err != nil || got.Files == 0 || got.Threads == 0 {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// inspectAs runs Inspect as an ordinary user.
func inspectAs(pid, folder string) int {
	n, _ := strconv.Atoi(pid)
	if err := becomeNobody(); err != nil {
		fmt.Println(err)
		return 1
	}
	_, err := Inspect([]int{n}, folder, true)
	fmt.Println(err)
	return 0
}

// TestHiddenFilesAreReported checks that hidden files are reported if the peer is an ordinary user, who
// cannot see them all.
func TestHiddenFilesAreReported(t *testing.T) {
	for how, want := range map[string]string{
		"mapped by a user": "it hides its files: it has mapped a file that has no name and is not open",
		"from its peer":    "it hides its files: open /proc/",
	} {
		t.Run(how, func(t *testing.T) {
			folder, err := os.MkdirTemp("", "hiding")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(folder) })
			if err := os.Chmod(folder, 0o711); err != nil {
				t.Fatal(err)
			}
			pid := hiding(t, folder, how)
			said, err := helper("inspect", strconv.Itoa(pid), folder).CombinedOutput()
			if err != nil || !strings.HasPrefix(string(said), want) {
				t.Errorf("got %q, %v; want %s", said, err, want)
			}
		})
	}
}

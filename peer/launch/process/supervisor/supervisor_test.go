package supervisor

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/sandbox"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/scratch"
)

// peerVariable makes this test binary a peer that the test can kill, or whose file it can replace. Its
// value is the scratch folder.
const peerVariable = "SUPERVISOR_TEST_PEER"

// sessionVariable makes that peer's programs run in a session of their own.
const sessionVariable = "SUPERVISOR_TEST_SESSION"

// session is the session of the programs under test, or nil for that of this process.
var session *Session

// roleVariable makes this test binary play another role, which its value names.
const roleVariable = "SUPERVISOR_TEST_ROLE"

var roles = make(map[string]func() int)

func TestMain(m *testing.M) {
	// syscall.Exit, since os.Exit takes a second under the race detector.
	if status, ours := Main(); ours {
		syscall.Exit(status)
	}
	if os.Getenv(proclink.FDVariable) != "" {
		syscall.Exit(program(os.Args[1:]))
	}
	if role := roles[os.Getenv(roleVariable)]; role != nil {
		syscall.Exit(role())
	}
	if folder := os.Getenv(peerVariable); folder != "" {
		syscall.Exit(peer(folder, os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// programs are roles that only some systems support.
var programs = make(map[string]func(args []string))

// program runs under the supervisor.
func program(args []string) int {
	if own := programs[args[0]]; own != nil {
		own(args[1:])
		return 0
	}
	switch args[0] {
	case "exit":
		fmt.Println("out")
		fmt.Fprintln(os.Stderr, "err")
		status, _ := strconv.Atoi(args[1])
		return status
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGTERM)
	case "describe":
		describe()
		return 0
	case "orphan": // a descendant in another session, whose parent has ended
		child := &exec.Cmd{Path: os.Args[0], Args: []string{os.Args[0], "parent"}}
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		child.Stdout = os.Stdout
		if err := child.Run(); err != nil {
			return 1
		}
		fmt.Println("ready")
		if len(args) > 1 {
			return 0
		}
	case "parent":
		child := &exec.Cmd{Path: os.Args[0], Args: []string{os.Args[0], "sleep"}}
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			return 1
		}
		return 0
	case "reopen":
		if err := os.WriteFile("/dev/stderr", []byte("err"), 0o600); err != nil {
			fmt.Println(err)
		}
		return 0
	case "sleep":
		fmt.Println("asleep")
	}
	time.Sleep(time.Hour) // until it is killed
	return 0
}

// describe prints a program's view of its environment.
func describe() {
	cwd, _ := os.Getwd()
	fmt.Println("cwd", cwd)
	fmt.Println("env", os.Environ())
	in, err := io.ReadAll(os.Stdin)
	fmt.Println("stdin", len(in), err)
	if tty, err := os.Open("/dev/tty"); err == nil {
		fmt.Println("terminal", tty.Name())
	}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		// The Go runtime opens files of its own.
		if link, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil &&
			(strings.HasPrefix(link, "pipe:") || strings.HasPrefix(link, "socket:")) {
			fmt.Println("fd", e.Name())
		}
	}
}

// peer starts a program with an orphan and waits to be killed. Given own, it instead waits for input and
// runs its own executable with these arguments until that ends.
func peer(folder string, own []string) int {
	self, _ := os.Executable()
	c := Command{Program: self, Args: []string{"orphan"}}
	if len(own) > 0 {
		c = Command{Program: Own, Args: own}
		os.Stdin.Read(make([]byte, 1))
	}
	line, other, err := proclink.Pair()
	if err != nil {
		return 1
	}
	defer line.Close()
	if os.Getenv(sessionVariable) != "" {
		c.Session = NewSession()
	}
	c.Scratch, c.Sandbox, c.Socket, c.Stdout, c.Stderr = folder, available(), other, os.Stdout, os.Stderr
	p, err := Start(c)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("supervisor", p.cmd.Process.Pid)
	if len(own) > 0 {
		p.Wait()
		p.Close()
		return 0
	}
	time.Sleep(time.Hour) // until it is killed
	return 0
}

// program returns the process ID of a program that has no children.
func (r *running) program(t *testing.T) int {
	t.Helper()
	below := new(Census).Take([]*Process{r.Process})[r.Process]
	if len(below) != 1 {
		t.Fatalf("processes of the supervisor: %v", below)
	}
	return below[0]
}

// mostProcesses is the limit of processes of programs under test.
const mostProcesses = 100

// running is a program under test, with the test's ends of its pipes.
type running struct {
	*Process
	line           *proclink.Conn
	stdout, stderr *os.File
	scratch        string
	answered       chan bool // whether the program is stopped
}

func newScratch(t testing.TB) string {
	t.Helper()
	job := scratch.At(filepath.Join(t.TempDir(), "scratch"), "job")
	if err := job.Make(); err != nil {
		t.Fatal(err)
	}
	if err := job.MakeProcess(view.Process{}); err != nil {
		t.Fatal(err)
	}
	return job.Process(view.Process{})
}

// run starts this test binary as a program, in the full sandbox that is available.
func run(t testing.TB, args ...string) *running {
	t.Helper()
	return runWithin(t, available(), args...)
}

func runWithin(t testing.TB, means sandbox.Means, args ...string) *running {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, err := tryRunBy(t, time.Now().Add(startTimeout), means, self, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func tryRunBy(t testing.TB, deadline time.Time, means sandbox.Means, path string, args ...string) (*running, error) {
	t.Helper()
	r := &running{scratch: newScratch(t), answered: make(chan bool, 1)}
	line, inherited, err := proclink.Pair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { line.Close() })
	r.line = line
	c := Command{Title: "test", Program: path, Args: args, Scratch: r.scratch, Limits: Limits{Niceness: 10, Processes: mostProcesses}, Sandbox: means, Session: session, Socket: inherited,
		Answered: func(stopped bool) { r.answered <- stopped }}
	for _, pipe := range []struct{ read, write **os.File }{{&r.stdout, &c.Stdout}, {&r.stderr, &c.Stderr}} {
		if *pipe.read, *pipe.write, err = os.Pipe(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*pipe.read).Close() })
		(*pipe.read).SetReadDeadline(time.Now().Add(20 * time.Second))
	}
	r.Process, err = startBy(c, deadline)
	for _, f := range []*os.File{inherited, c.Stdout, c.Stderr} {
		f.Close()
	}
	return r, err
}

// available returns the sandbox mechanisms that this machine provides.
var available = sync.OnceValue(func() sandbox.Means {
	folder, err := os.MkdirTemp("", "supervisor-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	return Probe(folder).Means
})

func readAll(t testing.TB, f *os.File) string {
	t.Helper()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatalf("pipe did not end: %v", err)
	}
	return string(b)
}

// readLine returns the next line of f.
func readLine(t testing.TB, f *os.File) string {
	t.Helper()
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func TestExitIsReported(t *testing.T) {
	cases := map[string]struct {
		args []string
		want Exit
	}{
		"success": {[]string{"exit", "0"}, Exit{}},
		"failure": {[]string{"exit", "3"}, Exit{Code: 3}},
		"signal":  {[]string{"kill"}, Exit{Code: -1, Signal: "terminated"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := run(t, c.args...)
			got := r.Wait()
			if runtime.GOOS == "linux" && got.Memory < 1<<20 {
				t.Errorf("reported %d bytes of memory", got.Memory)
			}
			if got.Memory = 0; got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if out, err := readAll(t, r.stdout), readAll(t, r.stderr); c.args[0] == "exit" && (out != "out\n" || err != "err\n") {
				t.Errorf("stdout %q, stderr %q", out, err)
			}
			if _, err := os.Stat(r.scratch); err != nil {
				t.Errorf("the scratch folder was removed before the files could be collected: %v", err)
			}
		})
	}
}

func TestO1ProgramIsIsolatedFromItsPeer(t *testing.T) {
	t.Setenv("OWNERS_SECRET", "x")
	r := run(t, "describe")
	got := readAll(t, r.stdout)
	lines := strings.Split(strings.TrimSpace(got), "\n")
	for _, want := range []string{"cwd " + r.scratch, "stdin 0 <nil>", "fd 1", "fd 2", "fd 3"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%s", want, got)
		}
	}
	for _, never := range []string{"SECRET", "terminal", "fd 4", "fd 5", "fd 6"} {
		if strings.Contains(got, never) {
			t.Errorf("%q in\n%s", never, got)
		}
	}
}

func TestKillRemovesDescendantsAndScratch(t *testing.T) {
	r := run(t, "orphan")
	readLine(t, r.stdout)
	r.Kill()
	if got := r.Wait(); got.Signal != "killed" {
		t.Errorf("got %+v", got)
	}
	readAll(t, r.stdout) // ends with the orphan
	r.Close()
	if _, err := os.Stat(filepath.Dir(r.scratch)); !os.IsNotExist(err) {
		t.Errorf("scratch folder is left: %v", err)
	}
}

func TestOrphansEndWithTheProgram(t *testing.T) {
	r := run(t, "orphan", "and exit")
	if got := r.Wait(); got.Code != 0 || got.Signal != "" {
		t.Errorf("got %+v", got)
	}
	if out := readAll(t, r.stdout); !strings.Contains(out, "ready") {
		t.Errorf("stdout %q", out)
	}
}

// TestSupervisorAnswers checks that each question gets one answer, and none after the last report.
func TestSupervisorAnswers(t *testing.T) {
	r := run(t, "sleep")
	for range 3 {
		r.ask(t)
	}
	r.Kill()
	r.Ask()
	r.Wait() // the supervisor has sent its last report
	r.Ask()
	if n := len(r.answered); n > 0 {
		t.Errorf("%d answers too many", n)
	}
}

// TestStartDeadlineDoesNotApplyToTheProgram checks that the deadline of the start does not apply to the
// running program.
func TestStartDeadlineDoesNotApplyToTheProgram(t *testing.T) {
	skip.Long(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	r, err := tryRunBy(t, deadline, available(), self, "sleep")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	<-time.After(time.Until(deadline))
	r.ask(t)
}

// TestSupervisorReportsAStoppedProgram checks that answers state whether the program is stopped, also
// after it has resumed.
func TestSupervisorReportsAStoppedProgram(t *testing.T) {
	r := run(t, "sleep")
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT, syscall.SIGTSTP, syscall.SIGCONT} {
		if err := syscall.Kill(r.program(t), s); err != nil {
			t.Fatal(err)
		}
		// The supervisor learns of it a moment later.
		for end := time.Now().Add(20 * time.Second); r.ask(t) != (s != syscall.SIGCONT); {
			if time.Now().After(end) {
				t.Fatalf("the supervisor did not detect %v", s)
			}
		}
	}
}

// ask returns the supervisor's answer, whether the program is stopped.
func (r *running) ask(t *testing.T) (stopped bool) {
	t.Helper()
	r.Ask()
	select {
	case stopped = <-r.answered:
	case <-time.After(20 * time.Second):
		t.Fatal("no answer")
	}
	return stopped
}

func TestProgramThatCannotRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("not a program\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"/no/such/program": "no such file", file: "exec format error"} {
		r, err := tryRunBy(t, time.Now().Add(startTimeout), available(), name)
		if err == nil {
			r.Close()
			t.Fatalf("%s ran", name)
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, which does not contain %q", err, want)
		}
	}
}

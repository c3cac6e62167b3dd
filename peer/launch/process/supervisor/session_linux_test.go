package supervisor

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// apart makes the programs of a test run in a session of their own.
func apart(t *testing.T) {
	t.Helper()
	if session = NewSession(); session == nil {
		skip.Lacks(t, "a kernel that schedules by session")
	}
	t.Cleanup(func() {
		session.Close()
		session = nil
	})
}

// sessionOf returns a process's session, and the kernel's description of its niceness.
func sessionOf(t *testing.T, pid int) (id int, competitor string) {
	t.Helper()
	id, err := unix.Getsid(pid)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", pid))
	if err != nil && !os.IsPermission(err) {
		t.Fatal(err)
	}
	return id, strings.TrimSpace(string(text))
}

// awaitNiceness waits until the session of a process has the given niceness.
func awaitNiceness(t *testing.T, pid int, niceness string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; <-time.After(time.Millisecond) {
		_, competitor := sessionOf(t, pid)
		if strings.HasSuffix(competitor, " nice "+niceness) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the session is %q, not nice %s", competitor, niceness)
		}
	}
}

// TestSessionKeepsItsPriorityDuringASlowStart simulates two slow starts, of which one ends first.
func TestSessionKeepsItsPriorityDuringASlowStart(t *testing.T) {
	apart(t)
	r := run(t, "sleep")
	readLine(t, r.stdout)
	pid := r.program(t)
	awaitNiceness(t, pid, sessionNiceness)
	session.countSlow(1)
	session.countSlow(1)
	awaitNiceness(t, pid, "0")
	session.countSlow(-1)
	if _, competitor := sessionOf(t, pid); !strings.HasSuffix(competitor, " nice 0") {
		t.Errorf("the session is %q during a slow start", competitor)
	}
	session.countSlow(-1)
	awaitNiceness(t, pid, sessionNiceness)
}

// TestSessionGetsItsNicenessOnABusyKernel checks that a session gets its niceness eventually. Another
// session uses up all changes that the kernel accepts from ordinary users, for longer than the start of a
// session takes.
func TestSessionGetsItsNicenessOnABusyKernel(t *testing.T) {
	apart(t)
	_, competitor := sessionOf(t, os.Getpid())
	niceness := competitor[strings.LastIndexByte(competitor, ' ')+1:]
	enough, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-enough:
				return
			default:
				_ = os.WriteFile(ownNiceness, []byte(niceness), 0)
			}
		}
	}()
	time.AfterFunc(2*time.Second, func() { close(enough) })
	r := run(t, "sleep")
	readLine(t, r.stdout)
	<-ended
	awaitNiceness(t, r.program(t), sessionNiceness)
}

// TestProgramsShareALowPrioritySession checks that programs share a session of lower priority, without
// their peer and their supervisors.
func TestProgramsShareALowPrioritySession(t *testing.T) {
	apart(t)
	own, ownCompetitor := sessionOf(t, os.Getpid())
	programs := make(map[int]bool)
	for range 2 {
		r := run(t, "sleep")
		readLine(t, r.stdout)
		awaitNiceness(t, r.program(t), sessionNiceness)
		id, competitor := sessionOf(t, r.program(t))
		if id == own || competitor == ownCompetitor {
			t.Errorf("the program is in session %d, %q; its peer in %d, %q", id, competitor, own, ownCompetitor)
		}
		programs[id] = true
		if supervisors, competitor := sessionOf(t, r.Supervisor()); supervisors == id || strings.Contains(competitor, " nice "+sessionNiceness) {
			t.Errorf("the supervisor is in session %d, %q, the program in %d", supervisors, competitor, id)
		}
	}
	if len(programs) != 1 {
		t.Errorf("want all ranks in one session, so that they can yield to each other; got %v", programs)
	}
}

// TestSessionIsReplaced checks that a new session starts after its leader was killed, or after the peer had
// no programs. Running programs continue.
func TestSessionIsReplaced(t *testing.T) {
	apart(t)
	before := run(t, "sleep")
	readLine(t, before.stdout)
	for name, end := range map[string]func(){
		"killed": func() {
			if err := session.leader.Kill(); err != nil {
				t.Fatal(err)
			}
			awaitExitOf(t, session.leader.Pid)
		},
		"closed": session.Close,
	} {
		end()
		r := run(t, "exit", "3")
		if got := r.Wait(); got.Code != 3 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	before.ask(t)
}

// awaitExitOf waits until a child has ended, without reaping it.
func awaitExitOf(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
}

// TestSeparateSessionIsTransparent repeats other tests with programs in a separate session. Terminal stop
// signals differ there: no process could resume a program that they stop.
func TestSeparateSessionIsTransparent(t *testing.T) {
	skip.Long(t)
	apart(t)
	t.Setenv(sessionVariable, "1")
	for name, test := range map[string]func(*testing.T){
		"exit": TestExitIsReported, "nothing of the peer": TestO1ProgramIsIsolatedFromItsPeer,
		"killed with its descendants": TestKillRemovesDescendantsAndScratch, "orphans": TestOrphansEndWithTheProgram,
		"answers": TestSupervisorAnswers, "cannot run": TestProgramThatCannotRun, "suspend": TestSuspendStopsAll,
		"killed peer": TestS4NoProcessOutlivesAKilledPeer, "killed supervisor": TestProgramEndsWithItsSupervisor,
		"stopped supervisor": TestKillResumesAStoppedSupervisor, "stopped supervisor, killed": TestKillStoppedSupervisor,
		"stale": TestKillStaleFindsProgramsByDirectory, "census": TestCensus, "sandbox": TestO1SandboxHolds,
		"upgraded": TestUpgradedPeerRunsItsOwnExecutable,
	} {
		t.Run(name, test)
	}
}

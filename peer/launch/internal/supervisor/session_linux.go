package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// A Session is one for programs, apart from their peer's. Where there are no control groups the
// scheduler (sched_autogroup, see sched(7)) treats each session as one competitor, and the niceness of
// processes counts within theirs only. So all programs together give way to others, and the peer,
// which answers for them, need not. In sessions of their own, ranks that share a processor could not
// hand it to one another by yielding, and together they would get more than the owner's one.
//
// A process is born into a session, and cannot go to another that exists. So the session's leader forks
// the supervisors (leader_linux.go), whose parent is the peer nevertheless. Each of them leaves
// when its program runs: it has to answer the peer.
type Session struct {
	mu     sync.Mutex
	leader *os.Process // nil: it has not begun
	asks   *net.UnixConn

	weight struct {
		sync.Mutex
		pid      int    // of the leader; 0: there is none
		late     int    // starts that take long
		niceness string // nice value that the kernel has been told; "": the default
	}
}

// NewSession returns one that begins with its first program. It is nil where sessions do not
// compete: programs are in their peer's then.
func NewSession() *Session {
	if _, err := os.Stat(ownNiceness); err != nil {
		return nil
	}
	return new(Session)
}

// lateAfter is how long a start takes on a machine with processors to spare, and more.
const lateAfter = time.Second

// hurry is called when a start begins; it returns what is to be called at its end. The start of a program takes
// little, but on a busy machine the programs' session gets so little that many starts at once would take minutes. So
// the session does not give way while a start takes long. Programs that run gain by that, for as long.
func (s *Session) hurry() (settled func()) {
	if s == nil {
		return func() {}
	}
	late := time.AfterFunc(lateAfter, func() { s.late(1) })
	return func() {
		if !late.Stop() {
			s.late(-1)
		}
	}
}

// late counts starts that take long.
func (s *Session) late(change int) {
	s.weight.Lock()
	defer s.weight.Unlock()
	s.weight.late += change
	s.weigh()
}

// weigh tells the kernel the nice value of the session. The kernel accepts one such change in 100 ms from the
// processes of all users together, except those of root, so weigh tries again until it is accepted. The caller
// has locked weight.
func (s *Session) weigh() {
	want := sessionNiceness
	if s.weight.late > 0 {
		want = "0"
	}
	if s.weight.pid == 0 || s.weight.niceness == want {
		return
	}
	err := os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", s.weight.pid), []byte(want), 0)
	if errors.Is(err, syscall.EAGAIN) {
		time.AfterFunc(100*time.Millisecond, func() { s.late(0) })
		return
	}
	s.weight.niceness = want
}

// lead sets the leader's process, 0 if there is none, and makes its session give way.
func (s *Session) lead(pid int) {
	s.weight.Lock()
	defer s.weight.Unlock()
	s.weight.pid, s.weight.niceness = pid, ""
	s.weigh()
}

// start starts a supervisor there, or in the peer's session where its leader can have none, as with an emulator of
// another processor.
func (s *Session) start(b birth, files [supervisorFiles]*os.File, deadline time.Time) (*exec.Cmd, error) {
	cmd := b.supervisor(files)
	if s == nil {
		return cmd, cmd.Start()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.ask(b, files, deadline)
	if err != nil {
		s.end() // its answer may still come, and would be taken for another
		return nil, fmt.Errorf("the session of programs: %w", err)
	}
	if n.PID <= 0 { // -1 is everybody
		return cmd, cmd.Start()
	}
	cmd.Process, err = os.FindProcess(n.PID)
	return cmd, err
}

// ask has the leader fork, or a new one, should somebody have killed it.
func (s *Session) ask(b birth, files [supervisorFiles]*os.File, deadline time.Time) (n newborn, err error) {
	if s.leader == nil || s.say(b, files, deadline) != nil {
		s.end()
		if err := s.begin(); err != nil {
			return n, err
		}
		if err := s.say(b, files, deadline); err != nil {
			return n, err
		}
	}
	text := make([]byte, maxBirth)
	length, err := s.asks.Read(text)
	if err == nil {
		err = json.Unmarshal(text[:length], &n)
	}
	return n, err
}

// say tells the leader what to fork.
func (s *Session) say(b birth, files [supervisorFiles]*os.File, deadline time.Time) error {
	words, err := json.Marshal(b)
	if err != nil {
		return err
	}
	var fds [supervisorFiles]int
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	s.asks.SetDeadline(deadline)
	_, _, err = s.asks.WriteMsgUnix(words, syscall.UnixRights(fds[:]...), nil)
	return err
}

// begin starts the leader.
func (s *Session) begin() error {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	own, others := os.NewFile(uintptr(ends[0]), "session"), os.NewFile(uintptr(ends[1]), "session")
	defer own.Close()
	defer others.Close()
	asks, err := net.FileConn(own)
	if err != nil {
		return err
	}
	cmd := &exec.Cmd{
		Path: executable, Args: []string{leadName, "of programs"}, Env: []string{"GOMAXPROCS=1"}, Dir: "/",
		ExtraFiles:  []*os.File{others},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGCONT},
	}
	if err := cmd.Start(); err != nil {
		asks.Close()
		return err
	}
	s.leader, s.asks = cmd.Process, asks.(*net.UnixConn)
	s.lead(cmd.Process.Pid)
	return nil
}

// Close ends the leader; what it has started goes on. The next program begins the session anew.
func (s *Session) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

func (s *Session) end() {
	if s.leader == nil {
		return
	}
	s.lead(0)
	s.asks.Close()
	s.leader.Kill()
	s.leader.Wait()
	s.leader = nil
}

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

// A Session is a session for programs, separate from their peer's. The scheduler may treat each session as
// one competitor (sched_autogroup, see sched(7)); niceness then counts only within a session. A session
// therefore makes all programs together yield to other processes, where there are no control groups, while
// the peer itself need not yield. With one session per program, ranks that share a processor could not hand
// it to one another by yielding, and together they would get more than the owner's session.
//
// A process is created in a session, and cannot move to another existing one. The session's leader
// therefore forks the supervisors (leader_linux.go); their parent is the peer nevertheless. Each supervisor
// leaves the session when its program runs, because it must answer the peer in time.
type Session struct {
	mu     sync.Mutex
	leader *os.Process // nil if not started
	conn   *net.UnixConn

	weight struct {
		sync.Mutex
		pid      int    // process ID of the leader, or 0 for none
		late     int    // number of slow starts in progress
		niceness string // nice value last set in the kernel, or "" for the default
	}
}

// NewSession returns a session that starts with its first program. It returns nil if the kernel does not
// schedule by session: programs then run in their peer's session.
func NewSession() *Session {
	if _, err := os.Stat(ownNiceness); err != nil {
		return nil
	}
	return new(Session)
}

// slowAfter is the time after which a start counts as slow. On a machine with idle processors, a start
// takes less.
const slowAfter = time.Second

// expedite is called when a start begins; the caller calls the returned function when the start ends. A start
// needs little processor time, but on a busy machine the programs' session gets so little that many
// simultaneous starts would take minutes. The session therefore has the usual weight while a start is slow.
// Running programs benefit from that too.
func (s *Session) expedite() (settled func()) {
	if s == nil {
		return func() {}
	}
	late := time.AfterFunc(slowAfter, func() { s.countSlow(1) })
	return func() {
		if !late.Stop() {
			s.countSlow(-1)
		}
	}
}

func (s *Session) countSlow(change int) {
	s.weight.Lock()
	defer s.weight.Unlock()
	s.weight.late += change
	s.setNiceness()
}

// setNiceness sets the nice value of the session. The kernel accepts one such change in 100 ms from the
// processes of all users together, except those of root, so setNiceness retries until it is accepted. The
// caller holds the lock of weight.
func (s *Session) setNiceness() {
	want := sessionNiceness
	if s.weight.late > 0 {
		want = "0"
	}
	if s.weight.pid == 0 || s.weight.niceness == want {
		return
	}
	err := os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", s.weight.pid), []byte(want), 0)
	if errors.Is(err, syscall.EAGAIN) {
		time.AfterFunc(100*time.Millisecond, func() { s.countSlow(0) })
		return
	}
	s.weight.niceness = want
}

// setLeader sets the leader's process ID, 0 if there is none, and lowers the priority of its session.
func (s *Session) setLeader(pid int) {
	s.weight.Lock()
	defer s.weight.Unlock()
	s.weight.pid, s.weight.niceness = pid, ""
	s.setNiceness()
}

// start starts a supervisor in the session. If the leader cannot fork one, as under an emulator of another
// processor, the supervisor starts in the peer's session.
func (s *Session) start(b supervisorSpec, files [supervisorFiles]*os.File, deadline time.Time) (*exec.Cmd, error) {
	cmd := b.supervisor(files)
	if s == nil {
		return cmd, cmd.Start()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.ask(b, files, deadline)
	if err != nil {
		s.end() // the leader's answer may still arrive, and would be mistaken for a later one
		return nil, fmt.Errorf("start in the programs' session: %w", err)
	}
	if n.PID <= 0 { // -1 would address every process
		return cmd, cmd.Start()
	}
	cmd.Process, err = os.FindProcess(n.PID)
	return cmd, err
}

// ask makes the leader fork a supervisor. If the leader was killed, ask starts a new one.
func (s *Session) ask(b supervisorSpec, files [supervisorFiles]*os.File, deadline time.Time) (n forkResult, err error) {
	if s.leader == nil || s.sendSpec(b, files, deadline) != nil {
		s.end()
		if err := s.begin(); err != nil {
			return n, err
		}
		if err := s.sendSpec(b, files, deadline); err != nil {
			return n, err
		}
	}
	text := make([]byte, maxSpec)
	length, err := s.conn.Read(text)
	if err == nil {
		err = json.Unmarshal(text[:length], &n)
	}
	return n, err
}

// sendSpec sends the leader the description of a supervisor to fork.
func (s *Session) sendSpec(b supervisorSpec, files [supervisorFiles]*os.File, deadline time.Time) error {
	words, err := json.Marshal(b)
	if err != nil {
		return err
	}
	var fds [supervisorFiles]int
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	s.conn.SetDeadline(deadline)
	_, _, err = s.conn.WriteMsgUnix(words, syscall.UnixRights(fds[:]...), nil)
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
	s.leader, s.conn = cmd.Process, asks.(*net.UnixConn)
	s.setLeader(cmd.Process.Pid)
	return nil
}

// Close ends the leader; the programs in the session continue. The next program starts a new session.
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
	s.setLeader(0)
	s.conn.Close()
	s.leader.Kill()
	s.leader.Wait()
	s.leader = nil
}

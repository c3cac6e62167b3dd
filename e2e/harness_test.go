package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
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
)

// limit bounds everything that a test waits for. It is far above the usual times; a test that
// reaches it has failed.
const limit = 2 * time.Minute

// bin is the directory of the built commands and programs.
var bin string

// built is an option for machines without a compiler.
var built = flag.String("bin", "", "use the commands and programs in `DIR` instead of building them")

// full is an option for runs that may take an hour.
var full = flag.Bool("full", false, "run every test in all its variants and sizes")

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "p2pmpi-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Chmod(dir, 0o755) // for peers of another user
	bin = dir
	flag.Parse()
	setParallelism()
	if testing.Short() {
		chooseShort()
	}
	if *built != "" {
		bin = *built
		return m.Run()
	}
	build := exec.Command("go", "build", "-ldflags=-w", "-o", dir+"/", "./cmd/...", "./examples/...", "./e2e/programs/...") // without debug information
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// shortTests are the tests with real processes that run with -short. They need neither root nor
// network namespaces, and take some seconds each.
const shortTests = "^(TestDemonstration|TestR7BothReplicasKilled|TestCollectsOutputFiles|TestWrongAnswersAreDetected)$"

// chooseShort restricts the run to shortTests, unless -run names tests.
func chooseShort() {
	if f := flag.Lookup("test.run"); f.Value.String() == "" {
		flag.Set("test.run", shortTests)
		fmt.Println("-short: of the tests with real processes, only", shortTests, "run; make test-all runs all")
	}
}

// setParallelism makes tests that mostly wait run in parallel, unless -parallel sets the number. With more
// of them, a test's processes would get so little processor time that a failure detector may
// rightly consider them hung.
func setParallelism() {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	}
}

// A machine runs processes. It is either this machine, on loopback, or one on a LAN that a test creates.
type machine struct {
	addr   string   // IPv4
	env    []string // for every process, in addition to the variables of prepare
	boot   []string // options of every p2pboot
	named  []string // command in place of p2pboot, or nil for p2pboot itself
	clock  string   // file that steps the clock of every p2pboot, or empty for the usual clock
	inside *netns   // its own network, or nil on loopback
	lan    *port    // port of the kernel's switch, if it is connected to one
	apart  bool     // its processes have their own mounts, host names and queues, if the test is root
	user   uint32   // user of its processes, for which the test must be root, or 0 for the test's own user
	group  string   // path of the control group of version 2 in which its p2pboot starts, or empty for the test's own
}

// loopback is this machine. Nothing leaves it.
var loopback = &machine{
	addr: "127.0.0.1",
	env:  []string{"P2PMPI_MDNS=false", "P2PMPI_NAT=false"},
	boot: []string{"--listen", "/ip4/127.0.0.1/tcp/0", "--listen", "/ip4/127.0.0.1/udp/0/quic-v1"},
}

// prepare gives cmd an environment without the owner's configuration, and makes it end with the
// test even if the test is killed.
func (m *machine) prepare(cmd *exec.Cmd, home string) {
	cmd.Env = append([]string{
		"P2PMPI_ACCEPT=native", // most programs in tests belong to strangers
		"P2PMPI_NICENESS=5",    // many peers and their programs share this machine
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + os.TempDir(),
		"GOCACHE=" + goEnv("GOCACHE"), "GOMODCACHE=" + goEnv("GOMODCACHE"), "GOFLAGS=" + os.Getenv("GOFLAGS"),
	}, m.env...)
	// Each process gets its own session, as on separate machines. Sessions compete for the
	// processors (sched_autogroup), and one session for all peers of a test would get only as much
	// as one of its programs.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	if m.apart && os.Geteuid() == 0 {
		cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	}
	if m.user != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: m.user, Gid: m.user}
	}
}

func (m *machine) start(cmd *exec.Cmd) error {
	if m.inside == nil {
		return cmd.Start()
	}
	return m.inside.do(cmd.Start)
}

var goEnv = func() func(string) string {
	var mu sync.Mutex
	known := make(map[string]string)
	return func(name string) string {
		mu.Lock()
		defer mu.Unlock()
		if _, ok := known[name]; !ok {
			out, _ := exec.Command("go", "env", name).Output()
			known[name] = strings.TrimSpace(string(out))
		}
		return known[name]
	}
}()

// A peerProcess is a running p2pboot.
type peerProcess struct {
	t       *testing.T
	machine *machine
	cmd     *exec.Cmd
	home    string
	id      string
	addr    string // address of its machine, TCP if available, with the peer ID
	log     *lockedBuffer
	ready   chan string   // the ready line
	ended   chan struct{} // closed when the process has ended
}

// boot starts p2pboot on a new home and returns when it is ready.
func boot(t *testing.T, args ...string) *peerProcess {
	t.Helper()
	return bootAt(t, t.TempDir(), args...)
}

func bootAt(t *testing.T, home string, args ...string) *peerProcess {
	t.Helper()
	p := loopback.startPeer(t, home, args...)
	p.awaitReady()
	return p
}

// startPeer starts p2pboot; the caller must call awaitReady.
func (m *machine) startPeer(t *testing.T, home string, args ...string) *peerProcess {
	t.Helper()
	p := &peerProcess{
		t: t, machine: m, home: home, log: &lockedBuffer{},
		ready: make(chan string, 1), ended: make(chan struct{}),
	}
	command := m.named
	if command == nil {
		command = []string{filepath.Join(bin, "p2pboot")}
	}
	// By default, each peer counts as a separate machine. A test's own options follow and take
	// precedence.
	command = slices.Concat(command, []string{"--home", home, "--machine", "none"}, m.boot, args)
	if m.clock != "" {
		command = slices.Concat([]string{filepath.Join(bin, "stepped"), m.clock}, command)
	}
	p.cmd = exec.Command(command[0], command[1:]...)
	m.prepare(p.cmd, home)
	p.cmd.Stderr = p.log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if m.group != "" {
		group, err := os.Open(m.group)
		if err != nil {
			t.Fatal(err)
		}
		defer group.Close()
		p.cmd.SysProcAttr.UseCgroupFD, p.cmd.SysProcAttr.CgroupFD = true, int(group.Fd())
	}
	if err := m.start(p.cmd); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process
		first := true
		for lines := bufio.NewScanner(out); lines.Scan(); first = false {
			if first {
				p.ready <- lines.Text()
			}
		}
		p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(p.halt)
	return p
}

// awaitReady returns when the peer can take jobs; then its ID and address are known.
func (p *peerProcess) awaitReady() {
	p.t.Helper()
	select {
	case line := <-p.ready:
		p.parseReady(line)
	case <-p.ended:
		p.t.Fatalf("p2pboot ended before it was ready:\n%s", p.log)
	case <-time.After(limit):
		p.t.Fatalf("p2pboot is not ready:\n%s", p.log)
	}
}

func (p *peerProcess) parseReady(line string) {
	p.t.Helper()
	words := strings.Fields(line)
	if len(words) < 3 || words[0] != "ready" {
		p.t.Fatalf("p2pboot printed %q", line)
	}
	p.id = words[1]
	for _, a := range words[2:] {
		if strings.HasPrefix(a, "/ip4/"+p.machine.addr+"/tcp/") || p.addr == "" && strings.HasPrefix(a, "/ip4/"+p.machine.addr+"/") {
			p.addr = a
		}
	}
	if !strings.HasSuffix(p.addr, "/p2p/"+p.id) {
		p.t.Fatalf("no address of %s with the peer ID in %q", p.machine.addr, line)
	}
}

// halt halts the process as an owner would, and fails the test if that does not work.
func (p *peerProcess) halt() {
	p.signal(syscall.SIGCONT)
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.t.Errorf("p2pboot of %s does not end on SIGTERM:\n%s", p.home, p.log)
		p.signal(syscall.SIGQUIT)
		<-p.ended
	}
	if p.t.Failed() {
		p.t.Logf("log of peer %s:\n%s", p.id, p.log)
	}
}

func (p *peerProcess) signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

// kill kills the process, like a power failure.
func (p *peerProcess) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

func (p *peerProcess) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// status is the status that a script reads from the control socket.
type status struct {
	Slots     struct{ Total, Free, Held, Confirmed int }
	Use       struct{ Memory, Goroutines, Streams int }
	Hosted    []hosted
	Submitted []struct{ Unheard time.Time }
	// Connections holds the best connection to each peer.
	Connections []connection
	Granted     struct {
		Unheld []struct{ Limit, Why string }
	}
}

// hosted is a job that holds slots.
type hosted struct {
	Job, State string
	Use        struct{ CPU time.Duration }
}

type connection struct {
	Peer, Way, Relay, Why string
	RTT                   time.Duration
}

func (p *peerProcess) status() (status, error) {
	var s status
	client := http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(p.home, "control.sock"))
			},
		},
	}
	resp, err := client.Get("http://peer/v1/status")
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// eventually polls, since other processes offer no event to wait for.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond) // interval between polls
	}
}

// expectNothingLeft waits until the live peers have all their slots back and nothing of any job is
// left (S4).
func expectNothingLeft(t *testing.T, peers []*peerProcess) {
	t.Helper()
	for _, p := range peers {
		if p.alive() {
			eventually(t, "peer "+p.id, p.idle)
		}
	}
	for _, p := range peers {
		eventually(t, "processes of "+p.home, func() error { return noProcessIn(p.home) })
		eventually(t, "control groups of "+p.home, func() error { return noGroupOf(p.home) })
	}
}

// noGroupOf returns an error if a job has left a control group. A peer writes the location of its
// groups to a file.
func noGroupOf(home string) error {
	text, err := os.ReadFile(filepath.Join(home, "cgroups"))
	if err != nil {
		return nil // the peer creates no groups
	}
	sum := sha256.Sum256([]byte(home))
	for parent := range strings.Lines(string(text)) {
		left, err := filepath.Glob(filepath.Join(strings.TrimSpace(parent), fmt.Sprintf("p2pmpi-%x-%s", sum[:6], strings.Repeat("?", 32))))
		if err != nil || len(left) > 0 {
			return errors.Join(fmt.Errorf("%v are left", left), err)
		}
	}
	return nil
}

// unused returns an error while a job uses slots of the peer.
func (p *peerProcess) unused() error {
	s, err := p.status()
	if err == nil && s.Slots.Free != s.Slots.Total {
		err = fmt.Errorf("%d of %d slots free", s.Slots.Free, s.Slots.Total)
	}
	return err
}

// idle returns an error if a job has left anything at the peer.
func (p *peerProcess) idle() error {
	s, err := p.status()
	if err != nil {
		return err
	}
	if s.Slots.Free != s.Slots.Total || s.Slots.Total == 0 || len(s.Hosted) != 0 {
		return fmt.Errorf("%d of %d slots free, jobs %+v", s.Slots.Free, s.Slots.Total, s.Hosted)
	}
	left, err := os.ReadDir(filepath.Join(p.home, "scratch"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("the scratch folder contains %v", left)
	}
	return nil
}

// noProcessIn returns an error if a rank process lives in a peer's scratch directories.
func noProcessIn(home string) error {
	if left := processesIn(home); len(left) > 0 {
		return fmt.Errorf("processes %d are left in the scratch folders of %s", left, home)
	}
	return nil
}

// processesIn returns the rank processes in a peer's scratch directories, and their supervisors.
func processesIn(home string) (pids []int) {
	for pid, cwd := range workingFolders() {
		if strings.HasPrefix(cwd, filepath.Join(home, "scratch")+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// workingFolders returns the working directory of every process on the machine. For a sandboxed
// process, it is the path outside the sandbox.
func workingFolders() map[int]string {
	dirs := make(map[int]string)
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if cwd, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd")); err == nil {
				dirs[pid] = strings.TrimSuffix(cwd, " (deleted)")
			}
		}
	}
	return dirs
}

// rankProcess returns the program's own process of a rank and replica on p.
func (p *peerProcess) rankProcess(process string) (pid int, ok bool) {
	for pid, cwd := range workingFolders() {
		if !strings.HasPrefix(cwd, filepath.Join(p.home, "scratch")+"/") || filepath.Base(cwd) != process {
			continue
		}
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if !strings.HasSuffix(exe, "p2pboot") || bytes.HasPrefix(name, []byte("p2pmpi-wasm")) { // skip its supervisor
			return pid, true
		}
	}
	return 0, false
}

// grid boots peers with one supernode, which is killed once all peers know each other.
func grid(t *testing.T, n int, args ...string) []*peerProcess {
	t.Helper()
	return gridOf(t, n, func(int) []string { return args })
}

// gridOf is like grid, with separate options for each peer.
func gridOf(t *testing.T, n int, args func(i int) []string) []*peerProcess {
	t.Helper()
	return gridOn(t, slices.Repeat([]*machine{loopback}, n+1), args)
}

// An event is a line of p2prun --json.
type event struct {
	Event  string
	Time   time.Time
	Phase  string
	Count  int64
	Text   string
	Rate   float64
	Placed []struct {
		Rank, Replica int
		Peer          string
	}
	Routes  []route
	Planned []struct {
		Peer      string
		Processes []struct{ Rank, Replica int }
		Domain    struct {
			Owner    string
			Verified bool
		}
	}
	View *struct {
		R       int
		Masters []int
		States  []string
		Aside   []uint64
	}
	Took   time.Duration
	Choice *struct {
		Replicas, Peers int
		Fails, Success  float64
	}
	Result *struct {
		Status  int
		Message string
	}
}

// A route describes the channels from some processes to others.
type route struct {
	From, To         []struct{ Rank, Replica int }
	Kind, Way, Relay string
	Why              string
}

// A job is a running p2prun.
type job struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *lockedBuffer
	stderr *lockedBuffer
	events chan event // of --json; closed at the end of p2prun
	placed map[string]string
	ended  chan struct{}
	status int         // valid when ended is closed
	bound  *time.Timer // kills p2prun when it takes longer than any test should
}

// submit starts p2prun with --json. If home is not that of a running peer, p2prun is a submit-only
// peer.
func submit(t *testing.T, home string, args ...string) *job {
	t.Helper()
	return loopback.submit(t, home, args...)
}

func (m *machine) submit(t *testing.T, home string, args ...string) *job {
	t.Helper()
	return m.startJob(t, append([]string{"--home", home, "--json"}, args...)...)
}

func startJob(t *testing.T, args ...string) *job {
	t.Helper()
	return loopback.startJob(t, args...)
}

func (m *machine) startJob(t *testing.T, args ...string) *job {
	t.Helper()
	j := &job{
		t: t, stdout: &lockedBuffer{}, stderr: &lockedBuffer{},
		events: make(chan event, 1<<16), ended: make(chan struct{}),
	}
	j.cmd = exec.Command(filepath.Join(bin, "p2prun"), args...)
	m.prepare(j.cmd, t.TempDir())
	j.cmd.Dir = t.TempDir()
	j.cmd.Stdout = j.stdout
	errs, err := j.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.start(j.cmd); err != nil {
		t.Fatal(err)
	}
	j.bound = time.AfterFunc(2*limit, func() { j.cmd.Process.Kill() })
	go func() { // ends with the process
		defer j.bound.Stop()
		j.follow(errs)
		j.cmd.Wait()
		j.status = j.cmd.ProcessState.ExitCode()
		close(j.ended)
	}()
	t.Cleanup(func() {
		j.cmd.Process.Kill()
		<-j.ended
		if t.Failed() {
			t.Logf("p2prun %v: exit status %d\nstdout:\n%s\nstderr:\n%s", args, j.status, tail(j.stdout), tail(j.stderr))
		}
	})
	return j
}

// follow reads the events of p2prun until it ends.
func (j *job) follow(r io.Reader) {
	defer close(j.events)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		fmt.Fprintln(j.stderr, lines.Text())
		var e event
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Event != "" {
			j.events <- e
		}
	}
}

// waitFor returns the first event for which match returns true.
func (j *job) waitFor(what string, match func(event) bool) event {
	j.t.Helper()
	timeout := time.After(limit)
	for {
		select {
		case e, ok := <-j.events:
			if !ok {
				j.t.Fatalf("p2prun ended before %s", what)
			}
			if e.Event == "placed" {
				j.notePlaced(e)
			}
			if match(e) {
				return e
			}
		case <-timeout:
			j.t.Fatalf("no %s", what)
		}
	}
}

func (j *job) notePlaced(e event) {
	j.placed = make(map[string]string)
	for _, p := range e.Placed {
		j.placed[fmt.Sprintf("%d.%d", p.Rank, p.Replica)] = p.Peer
	}
}

// waitRunning returns when the ranks run; then the job's placement is known.
func (j *job) waitRunning() {
	j.t.Helper()
	j.waitFor("phase running", func(e event) bool { return e.Event == "phase" && e.Phase == "running" })
}

// peerOf returns the peer that runs a process.
func (j *job) peerOf(peers []*peerProcess, process string) *peerProcess {
	j.t.Helper()
	for _, p := range peers {
		if p.id == j.placed[process] {
			return p
		}
	}
	j.t.Fatalf("process %s is on no peer of %v", process, j.placed)
	return nil
}

// wait waits for the end of p2prun and returns its exit status.
func (j *job) wait() int {
	j.t.Helper()
	select {
	case <-j.ended:
	case <-time.After(2 * limit):
		j.t.Fatalf("p2prun does not end:\n%s", tail(j.stderr))
	}
	return j.status
}

// A lockedBuffer is a buffer that may be written and read concurrently.
type lockedBuffer struct {
	mu   sync.Mutex
	b    bytes.Buffer
	last time.Time // time of the last write
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = time.Now()
	return b.b.Write(p)
}

// lastWritten returns the time of the last write.
func (b *lockedBuffer) lastWritten() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// tail returns the end of a long text.
func tail(b *lockedBuffer) string {
	s := b.String()
	return s[max(0, len(s)-8000):]
}

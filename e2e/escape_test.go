package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/p2pmpi/p2pmpi/e2e/internal/nemesis"
	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// An ownerFiles is a set of files of an owner, and of addresses on which the test listens.
type ownerFiles struct {
	user     uint32 // the owner; 0 is the test's own user
	home     string
	outside  string // an owner's directory beside the home
	listener net.Listener
	abstract string
	setuid   string       // a copy of id(1) that runs as root for every user, or empty if the test cannot create it
	heard    atomic.Int32 // number of connections to the listeners
}

// An escapeTarget is the target of a hostile program: a peer, its owner's files, and a neighbour's job.
type escapeTarget struct {
	*ownerFiles
	peer      *peerProcess
	neighbour *job // job of another submitter
	steps     int  // last observed step of the neighbour
}

// secret is the content of each of the owner's files, and occurs nowhere else.
const secret = "p2pmpi-the-owners-secret"

// writeOwnerFiles creates the secrets of a user.
func writeOwnerFiles(t *testing.T, user uint32) *ownerFiles {
	t.Helper()
	b := &ownerFiles{user: user, home: folderOf(t, user), outside: folderOf(t, user)}
	b.write(t, b.home, ".ssh/id_ed25519")
	b.write(t, b.outside, "secret")
	b.abstract = strings.ReplaceAll(b.home, "/", "-")
	b.listener = b.listen(t, "tcp", "127.0.0.1:0")
	socket := filepath.Join(b.outside, "socket")
	b.listen(t, "unix", socket)
	b.give(t, socket)
	b.listen(t, "unix", "@"+b.abstract)
	if os.Geteuid() == 0 {
		b.setuid = rootsProgram(t)
	}
	return b
}

// write creates a file that belongs to the owner and contains the secret. The name is relative to folder, one of
// the owner's directories.
func (b *ownerFiles) write(t *testing.T, folder, name string) {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(secret), 0o600)); err != nil {
		t.Fatal(err)
	}
	for ; name != "."; name = filepath.Dir(name) {
		b.give(t, filepath.Join(folder, name))
	}
}

// give makes the user the owner of a file.
func (b *ownerFiles) give(t *testing.T, path string) {
	t.Helper()
	if b.user == 0 {
		return
	}
	if err := os.Chown(path, int(b.user), int(b.user)); err != nil {
		t.Fatal(err)
	}
}

// rootsProgram creates a setuid copy of id(1) that runs as root for every user. The test must be
// root.
func rootsProgram(t *testing.T) string {
	t.Helper()
	id, err := exec.LookPath("id")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(id)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(openFolder(t), "id")
	if err := errors.Join(os.WriteFile(path, text, 0o755), os.Chmod(path, 0o755|fs.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	return path
}

// newEscapeTarget boots a peer of a user (0 means the test's own user) on a home with secrets, and runs a
// neighbour there. A program that escapes from its sandbox is still in a separate mount namespace.
func newEscapeTarget(t *testing.T, user uint32) *escapeTarget {
	t.Helper()
	v := &escapeTarget{ownerFiles: writeOwnerFiles(t, user)}
	m := *loopback
	m.apart, m.user = true, user
	args := []string{"--slots", "16", "--slot-limits", "memory=128MiB,disk=32MiB,processes=64,files=256"}
	if v.setuid != "" {
		args = append(args, "--readable", v.setuid)
	}
	v.peer = m.startPeer(t, v.home, args...)
	v.peer.awaitReady()
	if user != 0 && logged(v.peer, "native programs cannot be confined here")() == nil {
		v.expectRefusal(t)
		skip.Lacks(t, "a sandbox for ordinary users (the peer reports that, and refuses strangers' programs)")
	}
	v.neighbour = submit(t, t.TempDir(), "--supernode", v.peer.addr, "-n", "2", "-a", "concentrate", "-w", "60",
		filepath.Join(bin, "stepper"), "-steps", "1000000", "-every", "10", "-work", "0", "-pause", "10ms")
	v.neighbour.waitRunning()
	v.expectNeighbour(t)
	return v
}

// ordinary is a user ID without an account on the machine.
const ordinary = 61234

// folderOf creates a directory of a user. The test must be root.
func folderOf(t *testing.T, user uint32) string {
	t.Helper()
	if user == 0 {
		return t.TempDir()
	}
	if os.Geteuid() != 0 {
		skip.Lacks(t, "root, to act as another user")
	}
	folder := filepath.Join(openFolder(t), "folder")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Chown(folder, int(user), int(user))); err != nil {
		t.Fatal(err)
	}
	return folder
}

// openFolder creates a directory that every user may read, unlike the test's other directories.
func openFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "p2pmpi-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

// expectRefusal expects that a stranger's program is refused.
func (v *escapeTarget) expectRefusal(t *testing.T) {
	t.Helper()
	j := submit(t, t.TempDir(), "--supernode", v.peer.addr, "-n", "1", filepath.Join(bin, "hostile"), "files")
	if s := j.wait(); s == 0 || !strings.Contains(j.stderr.String(), "unconfined") {
		t.Errorf("exit status %d, want a refusal: %s", s, j.stderr)
	}
}

// listen accepts connections and counts them.
func (b *ownerFiles) listen(t *testing.T, network, at string) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), network, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.heard.Add(1)
			c.Close()
		}
	}()
	return l
}

// attack starts the hostile program, as a job of a stranger.
func (v *escapeTarget) attack(t *testing.T, how string, options ...string) *job {
	t.Helper()
	pid, ok := v.peer.rankProcess("0.0")
	if !ok {
		t.Fatal("the neighbour has no process")
	}
	args := append([]string{"--supernode", v.peer.addr, "-n", "1", "-w", "60"}, options...)
	args = append(args, filepath.Join(bin, "hostile"))
	args = append(args, v.tell(v.peer.cmd.Process.Pid, pid, workingFolders()[pid])...)
	return submit(t, t.TempDir(), append(args, how)...)
}

// tell returns the arguments of the hostile program, which contain what the attacker knows in advance.
func (b *ownerFiles) tell(peer, victim int, folder string) []string {
	return []string{
		"-home=" + b.home, "-outside=" + b.outside, "-peer=" + strconv.Itoa(peer), "-victim=" + strconv.Itoa(victim),
		"-folder=" + folder, "-listener=" + b.listener.Addr().String(), "-abstract=" + b.abstract, "-setuid=" + b.setuid,
	}
}

var stepLine = regexp.MustCompile(`(?m)^rank 1 step ([0-9]+) `)

// expectNeighbour expects that the neighbour's job makes further steps, and that all its output is
// correct.
func (v *escapeTarget) expectNeighbour(t *testing.T) {
	t.Helper()
	before := v.steps
	eventually(t, "the neighbour's next steps", func() error {
		if all := stepLine.FindAllStringSubmatch(v.neighbour.stdout.String(), -1); len(all) > 0 {
			v.steps, _ = strconv.Atoi(all[len(all)-1][1])
		}
		if v.steps < before+20 {
			return fmt.Errorf("the neighbour is in step %d, after step %d", v.steps, before)
		}
		return nil
	})
	want := nemesis.ByRank(joinLines(stepperOutput(2, v.steps+100, 10)))
	out := v.neighbour.stdout.String()
	for rank, lines := range nemesis.ByRank(out[:strings.LastIndex(out, "\n")+1]) {
		if n := min(len(lines), len(want[rank])); !slices.Equal(lines[:n], want[rank][:n]) {
			t.Errorf("the neighbour's rank %s is wrong: %.400q", rank, lines)
		}
	}
}

// expectUnharmed expects that the peer and its neighbour are unharmed, and that the hostile program
// has written nothing in forbidden places.
func (v *escapeTarget) expectUnharmed(t *testing.T) {
	t.Helper()
	if !v.peer.alive() {
		t.Fatal("the peer has ended")
	}
	v.expectNeighbour(t)
	if n := v.heard.Load(); n > 0 {
		t.Errorf("the peer has %d connections", n)
	}
	if info, err := os.Stat(filepath.Join(v.outside, "secret")); err != nil {
		t.Error(err)
	} else if info.Mode() != 0o600 {
		t.Errorf("the owner's file has mode %v now", info.Mode())
	}
	const planted = "p2pmpi-planted"
	for _, dir := range []string{v.peer.home, v.outside, "/tmp", "/dev/shm", "/", "/etc", "/usr", "/var/tmp"} {
		if os.Remove(filepath.Join(dir, planted)) == nil {
			t.Errorf("the program wrote into %s", dir)
		}
	}
	if left := processesNaming("-home=" + v.peer.home); len(left) > 0 {
		for _, pid := range left {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		t.Errorf("processes %d are left on the machine", left)
	}
}

// processesNaming returns the hostile processes that have word on their command line.
func processesNaming(word string) (pids []int) {
	for pid := range workingFolders() {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		words := strings.Split(string(line), "\x00")
		if slices.Contains(words, word) && filepath.Base(words[0]) == "hostile" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestO1Bombs runs programs of strangers that exhaust the machine's resources, or that refuse to
// end. Each is stopped, and neither the peer nor its neighbour's job is affected.
func TestO1Bombs(t *testing.T) {
	t.Parallel()
	newEscapeTarget(t, 0).runBombs(t)
}

// TestO1BombsAtAnOrdinaryUser runs the programs of TestO1Bombs at a peer with the rights of an ordinary user.
func TestO1BombsAtAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	newEscapeTarget(t, ordinary).runBombs(t)
}

func (v *escapeTarget) runBombs(t *testing.T) {
	t.Helper()
	exceeded := func(what string) string { return "exceeded the limit of [^:]* " + what }
	unmeasured := exceeded("disk") + "|hides its files"
	bombs := map[string]struct {
		options []string
		status  int    // negative: any status
		says    string // regular expression for standard error
	}{
		"fork":        {nil, 70, exceeded("processes")},
		"memory":      {nil, 70, exceeded("memory")},
		"disk":        {nil, 70, exceeded("disk")},
		"mapped":      {nil, 70, unmeasured},
		"undumpable":  {nil, 70, unmeasured},
		"swap":        {nil, -1, ""}, // see expectSwap
		"woken":       {nil, 70, exceeded("disk")},
		"hop":         {nil, 70, exceeded("(disk|processes)")}, // a process that has ended counts until it is reaped
		"descriptors": {nil, 70, exceeded("(open )?files")},
		"sleep":       {[]string{"--timeout", "5s"}, 75, ""},
		"daemon":      {nil, 0, ""},
		"late":        {nil, 0, ""},
	}
	module := v.bringModule(t, endless())
	jobs := make(map[string]*job)
	for how, b := range bombs {
		jobs[how] = v.attack(t, how, b.options...)
	}
	for _, how := range slices.Sorted(maps.Keys(bombs)) {
		t.Run(how, func(t *testing.T) {
			j, b := jobs[how], bombs[how]
			if s := j.wait(); s != b.status && b.status >= 0 {
				t.Errorf("exit status %d, want %d", s, b.status)
			}
			if said := j.stderr.String(); !regexp.MustCompile(b.says).MatchString(said) {
				t.Errorf("the output does not match %q:\n%s", b.says, said)
			}
			if got := j.stdout.String(); strings.Contains(got, how+": got ") {
				t.Error(got)
			}
			if how == "swap" {
				v.expectSwap(t, j)
			}
		})
	}
	t.Run("compiler", func(t *testing.T) { // no other peer could run the module
		ended := regexp.MustCompile(`compile hostile\.wasm: its compiler (exceeded the limit of [^:]* memory|was ended \([a-z]+\) within )`)
		eventually(t, "the end of the module's compiler", func() error {
			if !ended.MatchString(v.peer.log.String()) {
				return errors.New("the compiler still runs")
			}
			return nil
		})
		module.cmd.Process.Kill()
		module.wait()
	})
	v.expectUnharmed(t)
	v.neighbour.cancel(t)
	expectNothingLeft(t, []*peerProcess{v.peer})
}

var swapLine = regexp.MustCompile(`swap: ([0-9]+) exchanges, ([0-9]+) folders were inspected`)

// expectSwap expects that a job has exchanged directories, including ones that the peer has
// inspected, unless the peer is root and needs no permission for that. Afterwards the job ends by
// itself, or the peer ends it because its disk use cannot be measured.
func (v *escapeTarget) expectSwap(t *testing.T, j *job) {
	t.Helper()
	ended := regexp.MustCompile("cannot be measured|hides its files").MatchString(j.stderr.String())
	if s := j.wait(); s != 0 && !(s == 70 && ended) {
		t.Errorf("exit status %d: %s", s, j.stderr)
	}
	said := swapLine.FindAllStringSubmatch(j.stdout.String(), -1)
	if len(said) == 0 {
		t.Fatalf("output %q", j.stdout)
	}
	if last := said[len(said)-1]; last[1] == "0" || last[2] == "0" && !ended && v.user != 0 {
		t.Error(last[0])
	}
}

// bringModule submits a module of a stranger.
func (v *escapeTarget) bringModule(t *testing.T, module []byte) *job {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hostile.wasm")
	if err := os.WriteFile(path, module, 0o600); err != nil {
		t.Fatal(err)
	}
	return submit(t, t.TempDir(), "--supernode", v.peer.addr, "-n", "1", "-w", "60", path)
}

// endless returns a module of one function whose compiled code is much longer than the module.
func endless() []byte {
	const additions = 2 << 20
	add := []byte{0x20, 0, 0x41, 1, 0x6a, 0x21, 0} // adds 1 to its local variable
	body := append([]byte{1, 1, 0x7f}, bytes.Repeat(add, additions)...)
	body = append(body, 0x0b)
	code := binary.AppendUvarint([]byte{1}, uint64(len(body)))
	code = append(code, body...)
	m := []byte("\x00asm\x01\x00\x00\x00" +
		"\x01\x04\x01\x60\x00\x00" + // a type: no arguments, no result
		"\x03\x02\x01\x00" + // a function of that type
		"\x07\x0a\x01\x06_start\x00\x00\x0a") // its name; its code
	return append(binary.AppendUvarint(m, uint64(len(code))), code...)
}

// TestO1OutputFlood runs a program that prints without end, for a submitter that reads nothing and
// then ends. The peer must not store the output.
func TestO1OutputFlood(t *testing.T) {
	t.Parallel()
	newEscapeTarget(t, 0).runOutputFlood(t)
}

// TestO1OutputFloodAtAnOrdinaryUser runs the program of TestO1OutputFlood at a peer with the rights of an ordinary user.
func TestO1OutputFloodAtAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	newEscapeTarget(t, ordinary).runOutputFlood(t)
}

func (v *escapeTarget) runOutputFlood(t *testing.T) {
	t.Helper()
	before := memoryOf(t, v.peer)
	j := v.attack(t, "output")
	eventually(t, "the flood", func() error {
		if j.stdout.String() == "" {
			return errors.New("no output yet")
		}
		return nil
	})
	j.cmd.Process.Signal(syscall.SIGSTOP)
	v.expectNeighbour(t)
	v.expectNeighbour(t)
	v.peer.expectGrowth(t, before, 32<<20)
	j.cmd.Process.Kill()
	j.wait()
	eventually(t, "the flood's end", func() error {
		if left := processesNaming("-home=" + v.peer.home); len(left) > 0 {
			return fmt.Errorf("processes %d are left", left)
		}
		return nil
	})
	v.expectUnharmed(t)
}

// cancel cancels a job as its user would, by Ctrl-C.
func (j *job) cancel(t *testing.T) {
	t.Helper()
	j.cmd.Process.Signal(syscall.SIGINT)
	if s := j.wait(); s != 130 {
		t.Errorf("exit status %d of a cancelled job", s)
	}
}

// TestO1Escapes runs a stranger's program that tries, in many ways, to access data of the owner,
// the peer and a neighbour. Each attempt must be stopped.
func TestO1Escapes(t *testing.T) {
	t.Parallel()
	newEscapeTarget(t, 0).runEscapes(t)
}

// TestO1EscapesFromAnOrdinaryUser runs the attempts of TestO1Escapes at a peer of an ordinary user. A program that
// escapes has that user's rights.
func TestO1EscapesFromAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	newEscapeTarget(t, ordinary).runEscapes(t)
}

func (v *escapeTarget) runEscapes(t *testing.T) {
	t.Helper()
	least := map[string]int{"files": 30, "network": 20, "processes": 15, "kernel": 30, "spy": 6} // least number of attempts
	marked := v.attack(t, "marked")
	eventually(t, "the mark of a neighbour", func() error {
		if !strings.Contains(marked.stdout.String(), "marked") {
			return errors.New("no mark yet")
		}
		return nil
	})
	jobs := make(map[string]*job)
	for group := range least {
		options := []string{"-o", "link-*"}
		if group == "spy" {
			options = append(options, "-n", "2") // each rank looks for the other's mark
		}
		jobs[group] = v.attack(t, group, options...)
	}
	for _, group := range slices.Sorted(maps.Keys(jobs)) {
		t.Run(group, func(t *testing.T) {
			j := jobs[group]
			if s := j.wait(); s != 0 {
				t.Errorf("exit status %d", s)
			}
			stopped, works := 0, false
			for line := range strings.Lines(j.stdout.String()) {
				switch name, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); {
				case strings.HasPrefix(what, "stopped: "):
					stopped++
				case name == "own child" && what == "works":
					works = true
				default:
					t.Errorf("the program printed %s: %s", name, what)
				}
			}
			if stopped < least[group] {
				t.Errorf("%d attempts were stopped, want at least %d", stopped, least[group])
			}
			if !works && group != "spy" { // the group spy checks this itself
				t.Error("the children cannot do what is permitted")
			}
			if out := j.stdout.String() + j.stderr.String(); strings.Contains(out, secret) {
				t.Error("the output contains a secret of the owner")
			}
			j.expectNoLinks(t)
		})
	}
	marked.cancel(t)
	v.expectUnharmed(t)
}

// expectNoLinks expects that no file was collected through links.
func (j *job) expectNoLinks(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(j.cmd.Dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("collected %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

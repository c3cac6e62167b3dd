package launch

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/jobspec"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/hostcall"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
	"github.com/p2pmpi/p2pmpi/peer/internal/policy"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/proc"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/wasm"
)

// otherEngine names a variable of the environment: the executable of an engine that these tests
// are run with, too.
const otherEngine = "P2PMPI_TEST_ENGINE"

// inEach runs a test with each engine.
func inEach(t *testing.T, test func(t *testing.T, e Engine)) {
	t.Run("wazero", func(t *testing.T) { test(t, BuiltIn()) })
	path := os.Getenv(otherEngine)
	if path == "" {
		if skip.Forbidden() && runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
			t.Fatal(otherEngine + " names no other engine")
		}
		return
	}
	home := t.TempDir()
	e, err := ExamineEngine(home, path, ExamineWalls(home))
	if err != nil {
		t.Fatal(err)
	}
	t.Run(e.Name, func(t *testing.T) { test(t, e) })
}

// idleModule returns a module with so many functions, none of which does anything.
func idleModule(functions int) []byte {
	return module(
		section(1, 1, []byte{0x60, 0, 0}),          // a type of functions: nothing to nothing
		section(3, functions, []byte{0}),           // are of it
		section(10, functions, []byte{2, 0, 0x0b}), // have no variables, and end
	)
}

func module(sections ...[]byte) []byte {
	return append([]byte("\x00asm\x01\x00\x00\x00"), bytes.Join(sections, nil)...)
}

// section returns one of n things that are alike.
func section(id byte, n int, each []byte) []byte {
	return sized([]byte{id}, append(binary.AppendUvarint(nil, uint64(n)), bytes.Repeat(each, n)...))
}

// sized appends contents with their size before them.
func sized(b, contents []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(contents))), contents...)
}

// doing returns a module with one page of memory that runs a function with so many variables
// of type i32 when it begins.
func doing(variables int, code []byte) []byte {
	variable := append(binary.AppendUvarint([]byte{1}, uint64(variables)), 0x7f)
	return module(
		section(1, 1, []byte{0x60, 0, 0}),
		section(3, 1, []byte{0}),
		section(5, 1, []byte{0, 1}),
		[]byte{8, 1, 0}, // begins with the function
		section(10, 1, sized(nil, append(append(variable, code...), 0x0b))),
	)
}

// greedy takes memory until it gets no more, uses all of it, and traps if it has less than
// 3000 pages, which are 187 MiB.
var greedy = doing(1, []byte{
	0x03, 0x40, 0x41, 1, 0x40, 0, 0x41, 0x7f, 0x47, 0x0d, 0, 0x0b, // while grow(1) != -1
	0x03, 0x40, // for each 4 KiB
	0x20, 0, 0x41, 1, 0x36, 2, 0, // write there
	0x20, 0, 0x41, 0x80, 0x20, 0x6a, 0x22, 0, 0x3f, 0, 0x41, 16, 0x74, 0x49, 0x0d, 0, 0x0b,
	0x3f, 0, 0x41, 0xb8, 0x17, 0x49, 0x04, 0x40, 0x00, 0x0b,
})

// leaver has rank 1 send messages of a MiB for as long as it can, and rank 0 take one, ask for
// more without waiting for them, and exit with 7.
var leaver = module(
	sized([]byte{1}, []byte{5, // types of functions
		0x60, 0, 0,
		0x60, 2, 0x7f, 0x7f, 1, 0x7f,
		0x60, 6, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f,
		0x60, 7, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f,
		0x60, 1, 0x7f, 0,
	}),
	sized([]byte{2}, slices.Concat([]byte{5},
		imported(hostcall.Name, "join", 1), imported(hostcall.Name, "irecv", 2), imported(hostcall.Name, "recv", 3),
		imported(hostcall.Name, "send", 3), imported("wasi_snapshot_preview1", "proc_exit", 4))),
	section(3, 1, []byte{0}),
	section(5, 1, []byte{0, 32}),
	[]byte{8, 1, 5}, // begins with the function
	section(10, 1, sized(nil, slices.Concat([]byte{1, 1, 0x7f,
		0x41, 0, 0x41, 0, 0x10, 0, 0x1a, // join(0, 0)
		0x41, 0, 0x28, 2, 0, 0x04, 0x40, // if rank != 0
		0x03, 0x40}, message(0), []byte{0x41, 0, 0x41, 0, 0x10, 3, 0x45, 0x0d, 0, 0x0b, // while send(...) == 0
		0x0f, 0x0b}, // return
		message(1), []byte{0x41, 32, 0x41, 0, 0x10, 2, 0x1a, // recv(...)
			0x41, 50, 0x21, 0, // for 50 times
			0x03, 0x40}, message(1), []byte{0x41, 32, 0x10, 1, 0x1a, // irecv(...)
			0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b,
			0x41, 7, 0x10, 4, 0x0b}))),
)

// spinner computes for ever.
var spinner = doing(0, []byte{0x03, 0x40, 0x0c, 0, 0x0b})

// scribbler writes files of a MiB, which it never closes, and traps if it has written 62.
var scribbler = module(
	sized([]byte{1}, []byte{3, // types of functions
		0x60, 0, 0,
		0x60, 9, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7e, 0x7e, 0x7f, 0x7f, 1, 0x7f,
		0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f,
	}),
	sized([]byte{2}, slices.Concat([]byte{2},
		imported("wasi_snapshot_preview1", "path_open", 1), imported("wasi_snapshot_preview1", "fd_write", 2))),
	section(3, 1, []byte{0}),
	section(5, 1, []byte{0, 32}),
	[]byte{8, 1, 2}, // begins with the function
	section(10, 1, sized(nil, slices.Concat([]byte{1, 1, 0x7f},
		[]byte{0x41, 4, 0x41, 0x80, 0x80, 0xc0, 0, 0x36, 2, 0}, // what is written: a MiB, from 0 on
		[]byte{0x41, 0xc1, 0, 0x21, 0},                         // names are letters, from A on
		[]byte{0x03, 0x40, 0x41, 16, 0x20, 0, 0x36, 2, 0},
		[]byte{0x41, 3, 0x41, 0, 0x41, 16, 0x41, 1, 0x41, 1, 0x42, 0xc0, 0, 0x42, 0, 0x41, 0, 0x41, 8, 0x10, 0}, // path_open(3, 0, name, 1, create, to write, 0, 0, where to)
		[]byte{0x04, 0x40, 0x00, 0x0b},                                                                          // which succeeds
		[]byte{0x41, 8, 0x28, 2, 0, 0x41, 0, 0x41, 1, 0x41, 12, 0x10, 1, 0x1a},                                  // fd_write(file, list, 1, where to)
		[]byte{0x20, 0, 0x41, 1, 0x6a, 0x22, 0, 0x41, 0xff, 0, 0x49, 0x0d, 0, 0x0b, 0x00, 0x0b},                 // while the name < 127
	))),
)

// TestModuleIsWithinTheLimits of time and disk while it runs, and is told which it has exceeded.
func TestModuleIsWithinTheLimits(t *testing.T) {
	skip.Long(t)
	inEach(t, func(t *testing.T, e Engine) {
		for limit, tc := range map[limits.Kind]struct {
			module []byte
			grant  limits.Limits
			named  string
		}{
			limits.Time: {spinner, limits.Limits{Time: 2 * time.Second}, "2s time"},
			limits.Disk: {scribbler, limits.Limits{Disk: 32 << 20}, "32 MiB disk"},
		} {
			t.Run(string(limit), func(t *testing.T) {
				j := newModuleJob(t, e, tc.module, limits.Grant{Slot: tc.grant})
				j.start()
				ended := j.links[0].exited(view.Process{})
				if !strings.HasPrefix(ended.Reason, "exceeded the limit of "+tc.named+": ") || ended.Limit != string(limit) {
					t.Errorf("ended with %v", ended)
				}
				t.Log(ended.Reason)
				j.stop()
			})
		}
	})
}

// TestProcessorsHoldForModules as for native programs.
func TestProcessorsHoldForModules(t *testing.T) {
	skip.Long(t)
	inEach(t, func(t *testing.T, e Engine) {
		t.Parallel()
		const most = 50
		j := newModuleJob(t, e, spinner, limits.Grant{Slot: limits.Limits{CPU: most}})
		j.need(cgroup.CPU)
		j.start()
		j.computes(most)
		j.stop()
	})
}

// message returns code that leaves the first arguments of calls that send or receive one of other.
func message(other byte) []byte {
	return []byte{0x41, 0x80, 2, 0x41, other, 0x41, 0, 0x41, 0x80, 0x80, 4, 0x41, 0x80, 0x80, 0xc0, 0}
}

// imported returns the import of a function of a type.
func imported(from, name string, kind byte) []byte {
	return append(sized(sized(nil, []byte(from)), []byte(name)), 0, kind)
}

// TestModuleLeavesWhatItHasAskedFor while that is coming in: it ends with its own status.
func TestModuleLeavesWhatItHasAskedFor(t *testing.T) {
	inEach(t, func(t *testing.T, e Engine) {
		j := newModuleJobOn(t, newTestbed(t, 1, 2), e, leaver, limits.Grant{})
		j.spec.N = 2
		j.start()
		j.awaitInitialized()
		j.begin()
		if e := j.links[0].exited(view.Process{}); e.Code != 7 || e.Reason != "" {
			t.Errorf("ended with %v", e)
		}
		j.stop()
	})
}

// TestModuleIsRefusedMoreMemory rather than ended.
func TestModuleIsRefusedMoreMemory(t *testing.T) {
	inEach(t, func(t *testing.T, e Engine) {
		j := newModuleJob(t, e, greedy, limits.Grant{Slot: limits.Limits{Memory: 256 << 20}})
		j.start()
		if e := j.links[0].exited(view.Process{}); e.Code != 0 || e.Reason != "" {
			t.Errorf("ended with %v", e)
		}
		j.stop()
	})
}

// tangle returns a module of a few bytes for each of n loops, one within the other, in whose
// midst all of n variables are used: each may come from anywhere, which makes n times n cases for
// a compiler.
func tangle(n int) []byte {
	var code []byte
	for range n {
		code = append(code, 0x03, 0x40)
	}
	for v := range n {
		get := binary.AppendUvarint([]byte{0x20}, uint64(v))
		code = append(append(code, get...), 0x41, 1, 0x6a)
		code = append(code, binary.AppendUvarint([]byte{0x21}, uint64(v))...)
	}
	for range n {
		code = append(code, 0x20, 0, 0x0d, 0, 0x0b)
	}
	return doing(n, code)
}

// TestCompileBomb has modules that keep a compiler busy, and have it take memory: one has
// 2^29 variables, which other engines than wazero refuse.
func TestCompileBomb(t *testing.T) {
	inEach(t, func(t *testing.T, e Engine) {
		large := doing(1<<29, nil)
		if e != BuiltIn() {
			large = tangle(8000)
		}
		for name, tc := range map[string]struct {
			module []byte
			limit  limits.Limits
			want   string
		}{
			"memory": {large, limits.Limits{Memory: 64 << 20}, "exceeded the limit of 64 MiB memory"},
			"time":   {tangle(4000), limits.Limits{Time: 500 * time.Millisecond}, "within 500ms"},
		} {
			t.Run(name, func(t *testing.T) {
				j := newModuleJob(t, e, tc.module, limits.Grant{Slot: tc.limit})
				l := j.connect(j.peers[0])
				l.say(j.prepareMessage(0, j.reserve(j.peers[0], 1)))
				if p := await(l, (*jobpb.FromPeer).GetPrepared); !strings.Contains(p.Error, tc.want) {
					t.Errorf("prepared, %q", p.Error)
				}
				j.gone()
			})
		}
	})
}

// TestWordsOfWhoHasNoMemory are known: without a control group nothing else tells why a compiler has ended.
func TestWordsOfWhoHasNoMemory(t *testing.T) {
	for words, want := range map[string]bool{
		"fatal error: runtime: out of memory\n\nruntime stack:\n":                                  true,
		"fatal error: out of memory allocating heap arena metadata\n":                              true,
		"runtime: out of memory: cannot allocate 4194304-byte block\nfatal error: out of memory\n": true,
		"fatal error: pageAlloc: out of memory":                                                    true,
		"fatal error: runtime: cannot map pages in arena address space":                            true,
		"fatal error: failed to reserve page summary memory":                                       true,
		"memory allocation of 65536 bytes failed":                                                  true,
		"panic: runtime error: invalid memory address or nil pointer dereference":                  false,
		"fatal error: unexpected signal during runtime execution":                                  false,
		"a function of the module is named out of memory":                                          false,
	} {
		if got := noMemory.MatchString(words); got != want {
			t.Errorf("%q: %v", words, got)
		}
	}
}

// staged returns the module of the only job that a peer has, as its processes read it.
func (m *member) staged(t *testing.T) fs.FileInfo {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(m.launch.scratch, "*", "*", "prog"))
	if err != nil || len(found) != 1 {
		t.Fatalf("modules %q are staged (%v)", found, err)
	}
	info, err := os.Stat(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// TestModuleIsCompiledOnce though two peers need it at the same time that keep what they
// have compiled in one place.
func TestModuleIsCompiledOnce(t *testing.T) {
	inEach(t, func(t *testing.T, e Engine) {
		b := newTestbed(t, 2, 1)
		j := newModuleJobOn(t, b, e, idleModule(20_000), limits.Grant{})
		b.peers[1].launch.modules = b.peers[0].launch.modules
		j.prepare()
		if !os.SameFile(b.peers[0].staged(t), b.peers[1].staged(t)) {
			t.Error("each has compiled it")
		}
		j.stop()
	})
}

// TestModuleOfAJobStays though the peer forgets it before the job begins.
func TestModuleOfAJobStays(t *testing.T) {
	inEach(t, func(t *testing.T, e Engine) {
		j := newModuleJob(t, e, idleModule(1), limits.Grant{})
		j.prepare()
		if err := os.RemoveAll(filepath.Join(j.peers[0].home, "modules")); err != nil {
			t.Fatal(err)
		}
		j.tell(j.startMessage())
		if s := await(j.links[0], (*jobpb.FromPeer).GetStarted); s.Error != "" {
			t.Fatalf("not started: %s", s.Error)
		}
		if e := j.links[0].exited(view.Process{}); e.Code != 0 || e.Reason != "" {
			t.Errorf("ended with %v", e)
		}
		j.stop()
	})
}

// newModuleJob returns a job of one process that is a module, on a peer that grants so much.
func newModuleJob(t *testing.T, e Engine, module []byte, g limits.Grant) *testJob {
	t.Helper()
	return newModuleJobOn(t, newTestbed(t, 1, 1), e, module, g)
}

// newModuleJobOn returns a job with a replica on each peer.
func newModuleJobOn(t *testing.T, b *testbed, e Engine, module []byte, g limits.Grant) *testJob {
	t.Helper()
	b.program = filepath.Join(t.TempDir(), "m.wasm")
	if err := os.WriteFile(b.program, module, 0o600); err != nil {
		t.Fatal(err)
	}
	j := b.newJob(t, 1, len(b.peers), nil)
	j.spec.Programs[0].OS, j.spec.Programs[0].Arch = jobspec.WasmOS, jobspec.WasmArch
	for _, peer := range j.peers {
		here := &peer.launch.config
		here.Grant, here.Engine = g, e
		peer.launch.modules = wasm.NewStore(filepath.Join(peer.home, "modules"), e.Name)
		here.Decide = func(p2ppeer.ID, []policy.Kind) policy.Decision { return policy.Decision{Kind: policy.Wasm} }
	}
	return j
}

// TestModuleRunsWithinTheGroupsOfItsJob, which its compiler had before.
func TestModuleRunsWithinTheGroupsOfItsJob(t *testing.T) {
	inEach(t, func(t *testing.T, e Engine) {
		j := newModuleJob(t, e, idleModule(1), limits.Grant{Slot: limits.Limits{Memory: 512 << 20, CPU: 100, Processes: 100}})
		j.start()
		if e := j.links[0].exited(view.Process{}); e.Code != 0 || e.Reason != "" {
			t.Errorf("ended with %v", e)
		}
		j.stop()
	})
}

// TestCompilerIsWithinTheLimits has a module whose compiled code is larger than any file
// of the job may be.
func TestCompilerIsWithinTheLimits(t *testing.T) {
	inEach(t, func(t *testing.T, e Engine) {
		j := newModuleJob(t, e, idleModule(20_000), limits.Grant{Slot: limits.Limits{Disk: 64 << 10}})
		l := j.connect(j.peers[0])
		l.say(j.prepareMessage(0, j.reserve(j.peers[0], 1)))
		if p := await(l, (*jobpb.FromPeer).GetPrepared); !strings.Contains(p.Error, "file too large") {
			t.Errorf("prepared, %q", p.Error)
		}
		j.gone()
	})
}

// TestCompilerIsNotIdle: at the lowest priority it has the weight of that, which is enough to be
// done some time.
func TestCompilerIsNotIdle(t *testing.T) {
	j := newModuleJob(t, BuiltIn(), tangle(4000), limits.Grant{Slot: limits.Limits{CPU: 100}})
	service := j.peers[0].launch
	if why := service.groups.Missing(cgroup.CPU); why != nil {
		skip.Lacks(t, why)
	}
	service.config.Niceness = MostNiceness
	group := func() string {
		for _, home := range service.groups.Home() {
			for _, parent := range []string{home, filepath.Dir(home)} { // as the versions have it
				if found, _ := filepath.Glob(filepath.Join(parent, "p2pmpi-*-"+j.spec.ID, "cpu.stat")); len(found) > 0 {
					return filepath.Dir(found[0])
				}
			}
		}
		return ""
	}
	l := j.connect(j.peers[0])
	l.say(j.prepareMessage(0, j.reserve(j.peers[0], 1)))
	var begun time.Time
	for late := time.Now().Add(patience); begun.IsZero() || time.Since(begun) < 500*time.Millisecond; time.Sleep(time.Millisecond) {
		folder := group()
		if folder != "" && begun.IsZero() {
			begun = time.Now()
		}
		if idle, _ := os.ReadFile(filepath.Join(folder, "cpu.idle")); folder != "" && strings.TrimSpace(string(idle)) == "1" {
			t.Fatal("the compiler is idle")
		}
		if time.Now().After(late) {
			t.Fatal("nothing is compiled")
		}
	}
	l.say(&jobpb.ToPeer{Body: &jobpb.ToPeer_Stop{Stop: &jobpb.Stop{Reason: "test"}}})
	await(l, (*jobpb.FromPeer).GetStopped)
	j.gone()
}

func TestAllowanceIsForTimeWithAProcessor(t *testing.T) {
	const s = time.Second
	a, now := allowance{left: 3 * s, starved: 2 * s}, proc.Turns{At: time.Now()}
	for i, tt := range []struct {
		ran, waited time.Duration // in a second
		left        time.Duration
	}{
		{s, 0, 2 * s},
		{0, s, 2 * s},
		{0, 0, s}, // it waits for something else
		{0, s, s},
		{0, s, 0}, // it has starved enough
	} {
		before := now
		now = proc.Turns{At: before.At.Add(s), Ran: before.Ran + tt.ran, Waited: before.Waited + tt.waited}
		if a.spend(before, now); a.left != tt.left {
			t.Errorf("second %d: %v are left, want %v", i, a.left, tt.left)
		}
	}
}

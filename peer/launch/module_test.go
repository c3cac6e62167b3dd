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
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/launch/module/wasm"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/proc"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
)

// otherEngine names an environment variable: the executable of a second engine for these tests.
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
	e, err := ExamineEngine(home, path, ExamineSandbox(home))
	if err != nil {
		t.Fatal(err)
	}
	t.Run(e.Name, func(t *testing.T) { test(t, e) })
}

// idleModule returns a module with the given number of functions, none of which does anything.
func idleModule(functions int) []byte {
	return module(
		section(1, 1, []byte{0x60, 0, 0}),          // one function type: no parameters, no results
		section(3, functions, []byte{0}),           // functions of that type
		section(10, functions, []byte{2, 0, 0x0b}), // bodies without variables
	)
}

func module(sections ...[]byte) []byte {
	return append([]byte("\x00asm\x01\x00\x00\x00"), bytes.Join(sections, nil)...)
}

// section returns a section with n equal items.
func section(id byte, n int, each []byte) []byte {
	return sized([]byte{id}, append(binary.AppendUvarint(nil, uint64(n)), bytes.Repeat(each, n)...))
}

// sized appends contents, prefixed with their size.
func sized(b, contents []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(contents))), contents...)
}

// doing returns a module with one page of memory. Its start function has the given code and number of i32
// variables.
func doing(variables int, code []byte) []byte {
	variable := append(binary.AppendUvarint([]byte{1}, uint64(variables)), 0x7f)
	return module(
		section(1, 1, []byte{0x60, 0, 0}),
		section(3, 1, []byte{0}),
		section(5, 1, []byte{0, 1}),
		[]byte{8, 1, 0}, // start function
		section(10, 1, sized(nil, append(append(variable, code...), 0x0b))),
	)
}

// greedy grows its memory until that fails, and writes to all of it. It traps if it has less than 3000
// pages (187 MiB).
var greedy = doing(1, []byte{
	0x03, 0x40, 0x41, 1, 0x40, 0, 0x41, 0x7f, 0x47, 0x0d, 0, 0x0b, // while grow(1) != -1
	0x03, 0x40, // for each 4 KiB
	0x20, 0, 0x41, 1, 0x36, 2, 0, // write there
	0x20, 0, 0x41, 0x80, 0x20, 0x6a, 0x22, 0, 0x3f, 0, 0x41, 16, 0x74, 0x49, 0x0d, 0, 0x0b,
	0x3f, 0, 0x41, 0xb8, 0x17, 0x49, 0x04, 0x40, 0x00, 0x0b,
})

// leaver makes rank 1 send messages of 1 MiB for as long as it can. Rank 0 receives one, starts further
// receives without waiting for them, and exits with 7.
var leaver = module(
	sized([]byte{1}, []byte{5, // function types
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
	[]byte{8, 1, 5}, // start function
	section(10, 1, sized(nil, slices.Concat([]byte{1, 1, 0x7f,
		0x41, 0, 0x41, 0, 0x10, 0, 0x1a, // join(0, 0)
		0x41, 0, 0x28, 2, 0, 0x04, 0x40, // if rank != 0
		0x03, 0x40}, message(0), []byte{0x41, 0, 0x41, 0, 0x10, 3, 0x45, 0x0d, 0, 0x0b, // while send(...) == 0
		0x0f, 0x0b}, // return
		message(1), []byte{0x41, 32, 0x41, 0, 0x10, 2, 0x1a, // recv(...)
			0x41, 50, 0x21, 0, // 50 times
			0x03, 0x40}, message(1), []byte{0x41, 32, 0x10, 1, 0x1a, // irecv(...)
			0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b,
			0x41, 7, 0x10, 4, 0x0b}))),
)

// spinner computes forever.
var spinner = doing(0, []byte{0x03, 0x40, 0x0c, 0, 0x0b})

// scribbler writes files of 1 MiB, which it never closes, and traps after 62 of them.
var scribbler = module(
	sized([]byte{1}, []byte{3, // function types
		0x60, 0, 0,
		0x60, 9, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7e, 0x7e, 0x7f, 0x7f, 1, 0x7f,
		0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f,
	}),
	sized([]byte{2}, slices.Concat([]byte{2},
		imported("wasi_snapshot_preview1", "path_open", 1), imported("wasi_snapshot_preview1", "fd_write", 2))),
	section(3, 1, []byte{0}),
	section(5, 1, []byte{0, 32}),
	[]byte{8, 1, 2}, // start function
	section(10, 1, sized(nil, slices.Concat([]byte{1, 1, 0x7f},
		[]byte{0x41, 4, 0x41, 0x80, 0x80, 0xc0, 0, 0x36, 2, 0}, // buffer: 1 MiB, from 0 on
		[]byte{0x41, 0xc1, 0, 0x21, 0},                         // names are single letters, from A on
		[]byte{0x03, 0x40, 0x41, 16, 0x20, 0, 0x36, 2, 0},
		[]byte{0x41, 3, 0x41, 0, 0x41, 16, 0x41, 1, 0x41, 1, 0x42, 0xc0, 0, 0x42, 0, 0x41, 0, 0x41, 8, 0x10, 0}, // path_open(3, 0, name, 1, create, write, 0, 0, result)
		[]byte{0x04, 0x40, 0x00, 0x0b},                                                                          // trap if that fails
		[]byte{0x41, 8, 0x28, 2, 0, 0x41, 0, 0x41, 1, 0x41, 12, 0x10, 1, 0x1a},                                  // fd_write(file, buffers, 1, result)
		[]byte{0x20, 0, 0x41, 1, 0x6a, 0x22, 0, 0x41, 0xff, 0, 0x49, 0x0d, 0, 0x0b, 0x00, 0x0b},                 // while the name < 127
	))),
)

// TestModuleIsWithinTheLimits checks that the time and disk limits apply to a running module, and that the
// submitter is told which one it exceeded.
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

// TestCPULimitHoldsForModules checks that the CPU limit applies to modules as to native programs.
func TestCPULimitHoldsForModules(t *testing.T) {
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

// message returns code that pushes the first arguments of a call that sends to rank other or receives from
// it.
func message(other byte) []byte {
	return []byte{0x41, 0x80, 2, 0x41, other, 0x41, 0, 0x41, 0x80, 0x80, 4, 0x41, 0x80, 0x80, 0xc0, 0}
}

// imported returns the import of a function of the given type.
func imported(from, name string, kind byte) []byte {
	return append(sized(sized(nil, []byte(from)), []byte(name)), 0, kind)
}

// TestModuleExitsWithPendingReceives checks that a module can exit with its own status while messages that
// it has asked for are arriving.
func TestModuleExitsWithPendingReceives(t *testing.T) {
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

// TestModuleIsRefusedMoreMemory checks that a module at its memory limit is refused more memory, and not
// ended.
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

// tangle returns a small module with n nested loops, in the innermost of which all of n variables are used.
// Each value may come from any loop, which makes n*n cases for a compiler.
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

// TestCompileBomb compiles modules that keep a compiler busy and make it use memory. One has 2^29
// variables, which engines other than wazero refuse.
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

// TestOutOfMemoryMessages checks that out-of-memory messages of compilers are recognized. Without a
// control group, nothing else explains their end.
func TestOutOfMemoryMessages(t *testing.T) {
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

// staged returns the module of a peer's only job, as its processes read it.
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

// TestModuleIsCompiledOnce checks that a module is compiled once, although two peers with a common store
// need it at the same time.
func TestModuleIsCompiledOnce(t *testing.T) {
	inEach(t, func(t *testing.T, e Engine) {
		b := newTestbed(t, 2, 1)
		j := newModuleJobOn(t, b, e, idleModule(20_000), limits.Grant{})
		b.peers[1].launch.modules = b.peers[0].launch.modules
		j.prepare()
		if !os.SameFile(b.peers[0].staged(t), b.peers[1].staged(t)) {
			t.Error("each peer compiled the module")
		}
		j.stop()
	})
}

// TestModuleOfAJobSurvivesTheStore checks that a job still starts after the store has lost its module.
func TestModuleOfAJobSurvivesTheStore(t *testing.T) {
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

// newModuleJob returns a job of one process that runs a module, on a peer with the given grant.
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

// TestModuleRunsInItsJobsControlGroups checks that a module runs in its job's control groups after its
// compiler has used them.
func TestModuleRunsInItsJobsControlGroups(t *testing.T) {
	inEach(t, func(t *testing.T, e Engine) {
		j := newModuleJob(t, e, idleModule(1), limits.Grant{Slot: limits.Limits{Memory: 512 << 20, CPU: 100, Processes: 100}})
		j.start()
		if e := j.links[0].exited(view.Process{}); e.Code != 0 || e.Reason != "" {
			t.Errorf("ended with %v", e)
		}
		j.stop()
	})
}

// TestCompilerIsWithinTheLimits compiles a module whose code exceeds the job's limit on the size of a file.
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

// TestCompilerIsNotIdle checks that a compiler at the lowest priority has the weight of that priority and
// is not in an idle group, so that it completes.
func TestCompilerIsNotIdle(t *testing.T) {
	j := newModuleJob(t, BuiltIn(), tangle(4000), limits.Grant{Slot: limits.Limits{CPU: 100}})
	service := j.peers[0].launch
	if why := service.groups.Missing(cgroup.CPU); why != nil {
		skip.Lacks(t, why)
	}
	service.config.Niceness = MostNiceness
	group := func() string {
		for _, home := range service.groups.Home() {
			for _, parent := range []string{home, filepath.Dir(home)} { // the location depends on the version
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
	for late := time.Now().Add(eventTimeout); begun.IsZero() || time.Since(begun) < 500*time.Millisecond; time.Sleep(time.Millisecond) { // interval between polls
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

func TestAllowanceExcludesTimeWithoutAProcessor(t *testing.T) {
	const s = time.Second
	a, now := allowance{left: 3 * s, starved: 2 * s}, proc.CPUStats{At: time.Now()}
	for i, tt := range []struct {
		ran, waited time.Duration // within one second
		left        time.Duration
	}{
		{s, 0, 2 * s},
		{0, s, 2 * s},
		{0, 0, s}, // waits for something other than a processor
		{0, s, s},
		{0, s, 0}, // its starvation is no longer excused
	} {
		before := now
		now = proc.CPUStats{At: before.At.Add(s), Ran: before.Ran + tt.ran, Waited: before.Waited + tt.waited}
		if a.spend(before, now); a.left != tt.left {
			t.Errorf("second %d: %v are left, want %v", i, a.left, tt.left)
		}
	}
}

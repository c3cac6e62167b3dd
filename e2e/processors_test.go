package e2e

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// A foreignProcessor is a kind of processor whose programs this machine can run, directly or with an
// emulator of Debian's qemu-user.
type foreignProcessor struct {
	arch     string      // GOARCH
	emulator string      // command, or empty if not needed
	machine  elf.Machine // machine type for which the emulator is registered
}

// foreigns are kinds of processors that most machines do not have. The engine has a compiler for
// the first, which takes 20 s there, and interprets modules on the other. An emulated interpreter
// takes minutes.
var foreigns = []foreignProcessor{
	{"arm64", "qemu-aarch64", elf.EM_AARCH64},
	{arch: "386"},
}

// TestWasmOverProcessors runs ranks of one module on peers with several kinds of processors. One
// peer has each of the other kinds. Enough ranks run here to keep the share of those peers small.
// The test does not run in parallel with others: an emulated compiler needs a processor.
func TestWasmOverProcessors(t *testing.T) {
	const ranks = 16
	others := foreigns[:1]
	if *full {
		others = foreigns
	}
	args := []string{"--accept", "wasm", "--slots"}
	first := boot(t, append(args, strconv.Itoa(ranks-len(others)))...)
	args = append([]string{"--supernode", first.addr}, args...)
	peers := []*peerProcess{first}
	for _, f := range others {
		peers = append(peers, f.on(t, loopback).startPeer(t, t.TempDir(), append(args, "1")...))
	}
	for _, p := range peers[1:] {
		p.awaitReady()
	}
	example, err := filepath.Abs("../examples/ep")
	if err != nil {
		t.Fatal(err)
	}
	mixed := sumsOfEP(t, "--supernode", first.addr, "-n", strconv.Itoa(ranks), "-w", "60", "--as", "wasm", example, "W")
	native := sumsOfEP(t, "--local", "1", "-n", "2", filepath.Join(bin, "ep"), "W")
	if mixed != native || native == "" {
		t.Errorf("the peers' sums are\n%s\nnative ones\n%s", mixed, native)
	}
	expectNothingLeft(t, peers)
}

// sumsOfEP runs EP, which verifies its result, and returns the result.
func sumsOfEP(t *testing.T, args ...string) string {
	t.Helper()
	j := submit(t, t.TempDir(), args...)
	if s := j.wait(); s != 0 || !strings.Contains(j.stdout.String(), "Verification = SUCCESSFUL") {
		t.Fatalf("exit status %d:\n%s\n%s", s, j.stdout, j.stderr)
	}
	return regexp.MustCompile(`(?s) Pairs .* Ranks `).FindString(j.stdout.String())
}

// on returns a copy of m with processors of that kind.
func (f foreignProcessor) on(t *testing.T, m *machine) *machine {
	t.Helper()
	there := *m
	if f.emulator != "" {
		there.named = f.emulated(t)
	}
	program := filepath.Join(t.TempDir(), "p2pboot-"+f.arch)
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", program, "./cmd/p2pboot")
	build.Dir = ".."
	build.Env = append(os.Environ(), "GOARCH="+f.arch)
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build for %s: %v\n%s", f.arch, err, text)
	}
	there.named = append(there.named, program)
	return &there
}

// emulated returns a command that runs another command and its children, with the emulator for
// programs of such a processor. It configures the kernel in a user namespace, so that no other
// process is affected.
func (f foreignProcessor) emulated(t *testing.T) []string {
	t.Helper()
	emulator, err := exec.LookPath(f.emulator)
	if err != nil {
		skip.Lacks(t, fmt.Sprintf("%s: apt-get install qemu-user", f.emulator))
	}
	const script = `mount -t binfmt_misc none /proc/sys/fs/binfmt_misc && printf %s "$1" >/proc/sys/fs/binfmt_misc/register && shift && exec "$@"`
	command := []string{
		"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", f.rule(emulator),
		"setpriv", "--pdeathsig", "KILL",
	}
	if text, err := exec.CommandContext(t.Context(), command[0], append(slices.Clone(command[1:]), "true")...).CombinedOutput(); err != nil {
		skip.Lacks(t, fmt.Sprintf("binfmt_misc in user namespaces, which Linux has since 6.7: %v\n%s", err, text))
	}
	return command
}

// rule is the kernel's configuration: the emulator runs Go programs for such a processor.
func (f foreignProcessor) rule(emulator string) string {
	const ofType, ofMachine, length = 16, 18, 20
	magic, mask := make([]byte, length), make([]byte, length)
	copy(magic, elf.ELFMAG)
	copy(mask, "\xff\xff\xff\xff")
	magic[ofType], mask[ofType] = byte(elf.ET_EXEC), 0xff
	magic[ofMachine], mask[ofMachine] = byte(f.machine), 0xff
	escaped := func(b []byte) (s string) {
		for _, c := range b {
			s += fmt.Sprintf(`\x%02x`, c)
		}
		return s
	}
	return fmt.Sprintf(":%s:M::%s:%s:%s:FP", f.arch, escaped(magic), escaped(mask), emulator)
}

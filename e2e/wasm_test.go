package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// module builds a Go package of this repository as a WebAssembly module.
func module(t *testing.T, pkg string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(pkg)+".wasm")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", out, pkg)
	build.Dir = ".."
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, text)
	}
	return out
}

// otherEngine is the executable of an engine that these tests use in addition to the built-in one, or "" if
// there is none.
var otherEngine = os.Getenv("P2PMPI_TEST_ENGINE")

// mixedGrid is like grid, but every second peer uses the other engine, if there is one. It checks
// that the peer reports that engine.
func mixedGrid(t *testing.T, n int, args ...string) []*peerProcess {
	t.Helper()
	if otherEngine == "" {
		if skip.Forbidden() && runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
			t.Fatal("P2PMPI_TEST_ENGINE names no second engine")
		}
		return grid(t, n, args...)
	}
	peers := gridOf(t, n, func(i int) []string {
		if i%2 == 1 {
			return args
		}
		return append(slices.Clone(args), "--wasm-engine", otherEngine)
	})
	for i, p := range peers {
		if log := p.log.String(); strings.Contains(log, "wazero-") == (i%2 == 0) {
			t.Fatalf("peer %d does not use the configured engine:\n%s", i, log)
		}
	}
	return peers
}

// TestWasmConformance runs the conformance suite as modules with replicas, in different engines if
// there are several. One replica is lost.
func TestWasmConformance(t *testing.T) {
	t.Parallel()
	peers := mixedGrid(t, 3, "--slots", "2")
	j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "3", "-r", "2", "-w", "60", "--timeout", "110s",
		module(t, "./e2e/programs/conformance"), "-replicated")
	j.waitRunning()
	killProcess(t, j.peerOf(peers, "1.0"), "1.0", syscall.SIGKILL)
	expectConformance(t, j, 3, 2, 1)
	expectNothingLeft(t, peers)
}

// TestWasmRunsWhereNativeProgramsAreRefused runs a Go package on peers whose owners accept only
// modules. p2prun must build the package as a module after the peers have refused the native program.
func TestWasmRunsWhereNativeProgramsAreRefused(t *testing.T) {
	t.Parallel()
	example, err := filepath.Abs("../examples/ep")
	if err != nil {
		t.Fatal(err)
	}
	peers := grid(t, 2, "--slots", "2", "--accept", "wasm")
	j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "2", "-r", "2", "-w", "2", "--timeout", "110s", example, "S")
	if s := j.wait(); s != 0 || !strings.Contains(j.stdout.String(), "Verification = SUCCESSFUL") {
		t.Errorf("exit status %d:\n%s\n%s", s, j.stdout, j.stderr)
	}
	expectNothingLeft(t, peers)
}

// TestWasmSeesItsScratchOnly runs a module that tries to reach more than its scratch directory.
func TestWasmSeesItsScratchOnly(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := mixedGrid(t, 1)[0]
	j := submit(t, p.home, "-n", "1", "--timeout", "110s", module(t, "./e2e/programs/captive"), secret, "/etc/passwd", "/proc/self/environ")
	if s := j.wait(); s != 0 || j.stdout.String() != "" {
		t.Errorf("exit status %d:\n%s\n%s", s, j.stdout, j.stderr)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
		t.Errorf("the secret is now %q, %v", b, err)
	}
}

// TestWasmResumesFromACheckpoint replaces a lost replica of a module. The new replica must resume
// from the last checkpoint.
func TestWasmResumesFromACheckpoint(t *testing.T) {
	t.Parallel()
	peers := mixedGrid(t, 3, "--slots", "2")
	stepper := module(t, "./e2e/programs/stepper")
	first := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "3", "-r", "2", "-w", "60", "--timeout", "110s", stepper, "-steps", "1", "-every", "1")
	if s := first.wait(); s != 0 { // afterwards all peers have compiled the module
		t.Fatalf("exit status %d", s)
	}
	const steps, kill = 2000, 500
	j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "2", "-r", "2", "-a", "concentrate", "-w", "60", "--timeout", "110s",
		stepper, "-steps", fmt.Sprint(steps), "-every", "100", "-work", "0s", "-pause", "5ms", "-pacer",
		"-save", "50", "-state", "1")
	j.waitRunning()
	j.printed(fmt.Sprintf("rank 1 step %d ", kill))
	killProcess(t, j.peerOf(peers, "1.0"), "1.0", syscall.SIGKILL)
	process, took, messages := j.awaitHealedBy(1)
	t.Logf("%s replaced 1.0 after %v, with %d messages", process, took, messages)
	if messages >= 2*kill { // each step has two messages
		t.Errorf("%d messages were replayed to %s, which has not resumed from a checkpoint", messages, process)
	}
	if s := j.wait(); s != 0 {
		t.Fatalf("exit status %d", s)
	}
	expectStepper(t, j, 2, steps, 100)
	expectNothingLeft(t, peers)
}

// compiled returns the path of a module compiled from C, as described in testdata/mpi.h.
func compiled(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWasmFromC runs a program in C with replicas.
func TestWasmFromC(t *testing.T) {
	t.Parallel()
	peers := mixedGrid(t, 2, "--slots", "3")
	j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "3", "-r", "2", "--timeout", "110s", compiled(t, "sum.wasm"))
	if s := j.wait(); s != 0 || j.stdout.String() != "the sum is 6\n" {
		t.Errorf("exit status %d:\n%s\n%s", s, j.stdout, j.stderr)
	}
}

// TestWasmStaysSmall runs a module with a million messages in a slot with little more memory than a
// runner needs.
func TestWasmStaysSmall(t *testing.T) {
	t.Parallel()
	p := mixedGrid(t, 1, "--slots", "1", "--slot-limits", "memory=96MiB")[0]
	j := submit(t, p.home, "-n", "1", "--timeout", "110s", compiled(t, "million.wasm"))
	if s := j.wait(); s != 0 {
		t.Errorf("exit status %d", s)
	}
	expectNothingLeft(t, []*peerProcess{p})
}

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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

// TestWasmConformance runs the conformance suite as modules with replicas, of which one
// is lost.
func TestWasmConformance(t *testing.T) {
	t.Parallel()
	peers := grid(t, 3, "--slots", "2")
	j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "3", "-r", "2", "-w", "60", "--timeout", "110s",
		module(t, "./e2e/programs/conformance"), "-replicated")
	j.waitRunning()
	killProcess(t, j.peerOf(peers, "1.0"), "1.0", syscall.SIGKILL)
	expectConformance(t, j, 3, 2, 1)
	expectNothingLeft(t, peers)
}

// TestWasmIsWhatPeersTakeThatTakeNothingElse runs a Go package on peers whose owners
// take only modules: it is built as one when they have refused.
func TestWasmIsWhatPeersTakeThatTakeNothingElse(t *testing.T) {
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

// TestWasmSeesItsScratchOnly runs a module that tries to see more.
func TestWasmSeesItsScratchOnly(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	j := startJob(t, "--home", t.TempDir(), "--local", "1", "-n", "1", module(t, "./e2e/programs/captive"), secret, "/etc/passwd", "/proc/self/environ")
	if s := j.wait(); s != 0 || j.stdout.String() != "" {
		t.Errorf("exit status %d:\n%s\n%s", s, j.stdout, j.stderr)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
		t.Errorf("the secret is now %q, %v", b, err)
	}
}

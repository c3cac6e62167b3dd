package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// glutton allocates up to a gibibyte of memory, until it is killed.
const glutton = "#!/bin/sh\nhead -c 1G /dev/zero | tail -n 1 > /dev/null\n"

// TestO1ExceededLimitIsReported makes both replicas of a rank exceed the owners' memory limit. The rank must
// get no new replica.
func TestO1ExceededLimitIsReported(t *testing.T) {
	t.Parallel()
	peers := grid(t, 3, "--slots", "1", "--slot-limits", "memory=64MiB,processes=64")
	expectExceeded(t, peers, "glutton", glutton, "64 MiB memory", "memory", "-r", "2")
}

// expectExceeded runs a program that exceeds a limit. It expects that p2prun reports the excess, and that
// nothing is left.
func expectExceeded(t *testing.T, peers []*peerProcess, name, content, limit, kind string, options ...string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(program, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
	j := submit(t, t.TempDir(), append(options, "--supernode", peers[0].addr, "-n", "1", "-w", "30", program)...)
	if s := j.wait(); s != 70 {
		t.Errorf("p2prun ended with status %d, want 70", s)
	}
	for _, want := range []string{"exceeded the limit of " + limit, `"limit":"` + kind + `"`} {
		if !strings.Contains(j.stderr.String(), want) {
			t.Errorf("p2prun did not print %q:\n%s", want, j.stderr)
		}
	}
	expectNothingLeft(t, peers)
}

// spinner is a module that computes forever.
const spinner = "\x00asm\x01\x00\x00\x00" +
	"\x01\x04\x01\x60\x00\x00" + // a function takes nothing, and returns nothing
	"\x03\x02\x01\x00\x08\x01\x00" + // there is one function, which is the start function
	"\x0a\x09\x01\x07\x00\x03\x40\x0c\x00\x0b\x0b" // it loops

// TestO1LimitExceededByAModuleIsReported runs a module that exceeds the owner's time limit.
func TestO1LimitExceededByAModuleIsReported(t *testing.T) {
	t.Parallel()
	p := boot(t, "--slots", "1", "--slot-limits", "time=2s")
	expectExceeded(t, []*peerProcess{p}, "spinner.wasm", spinner, "2s time", "time")
}

// TestS4GroupsAreRemovedWhenThePeerIsKilled checks that the supervisors remove the groups of a killed peer.
func TestS4GroupsAreRemovedWhenThePeerIsKilled(t *testing.T) {
	t.Parallel()
	p := boot(t, "--slots", "2")
	j := submit(t, t.TempDir(), "--supernode", p.addr, "-n", "2", "-w", "30", filepath.Join(bin, "stepper"), "-steps", "100000", "-every", "20")
	j.waitRunning()
	j.printed("step 20 ")
	if _, err := os.Stat(filepath.Join(p.home, "cgroups")); err == nil && noGroupOf(p.home) == nil {
		t.Error("the job has no control groups")
	}
	p.kill()
	expectNothingLeft(t, []*peerProcess{p})
	if s := j.wait(); s != 70 {
		t.Errorf("p2prun ended with status %d, want 70", s)
	}
}

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// stepClock makes the clock of a machine's peers wrong, like a faulty time service, and returns a
// function that corrects it. ok is false where the system does not allow it: see the program
// stepped.
func (m *machine) stepClock(t *testing.T, by time.Duration) (mend func(), ok bool) {
	t.Helper()
	if _, err := os.Stat(m.clock + ".ready"); m.clock == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err := os.WriteFile(m.clock, fmt.Append(nil, int(by.Seconds())), 0o644); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(m.clock); err != nil && !errors.Is(err, fs.ErrNotExist) { // two steps may overlap
			t.Error(err)
		}
	}, true
}

// TestClocksCanBeStepped checks the time in an unmodified program whose clock is stepped as
// TestNemesis does with peers.
func TestClocksCanBeStepped(t *testing.T) {
	t.Parallel()
	m := &machine{clock: filepath.Join(t.TempDir(), "clock")}
	date := func() time.Duration {
		cmd := exec.Command(filepath.Join(bin, "stepped"), m.clock, "date", "+%s")
		m.prepare(cmd, t.TempDir())
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		seconds, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return time.Since(time.Unix(seconds, 0))
	}
	if off := date().Abs(); off > limit {
		t.Errorf("the clock was not restored: off by %v", off)
	}
	mend, ok := m.stepClock(t, -time.Hour)
	if !ok {
		skip.Lacks(t, "root, and a kernel with seccomp's user notification")
	}
	if off := date(); (off - time.Hour).Abs() > limit {
		t.Errorf("the clock is late by %v, want an hour", off)
	}
	mend()
	if off := date().Abs(); off > limit {
		t.Errorf("after the correction, the clock is off by %v", off)
	}
}

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamplesComputeTheSameWhenAPeerIsKilled runs each example without replicas and without
// faults, and again with two replicas of which one is lost. Both runs must write the same file, to
// the last bit.
func TestExamplesComputeTheSameWhenAPeerIsKilled(t *testing.T) {
	t.Parallel()
	lines := filepath.Join(t.TempDir(), "lines")
	if err := os.WriteFile(lines, numbers(1_000_000), 0o600); err != nil {
		t.Fatal(err)
	}
	staged := strings.TrimPrefix(lines, "/")
	for _, tc := range []struct {
		name, file string
		options    []string // of p2prun
		args       []string
	}{
		{"mandelbrot", "mandelbrot.png", nil, []string{"-width", "600", "-height", "450", "-limit", "100000"}},
		{"heat", "heat.png", nil, nil},
		{"nbody", "nbody.csv", nil, []string{"-bodies", "2000", "-steps", "100", "-csv", "nbody.csv"}},
		{"samplesort", "sorted.txt", []string{"-i", lines}, []string{"-integers", staged}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run := func(options ...string) (*job, []byte) {
				options = append(options, tc.options...)
				options = append(options, "--home", t.TempDir(), "--json", "-n", "3", "-o", tc.file, filepath.Join(bin, tc.name))
				j := startJob(t, append(options, tc.args...)...)
				if s := j.wait(); s != 0 {
					t.Fatalf("exit status %d:\n%s", s, j.stderr)
				}
				written, err := os.ReadFile(filepath.Join(j.cmd.Dir, tc.file))
				if err != nil {
					t.Fatal(err)
				}
				return j, written
			}
			_, want := run("--local", "3")
			j, got := run("--local", "6", "-r", "2", "--lose", "100ms")
			if !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes differ from the %d bytes without a loss", tc.file, len(got), len(want))
			}
			if !strings.Contains(j.stderr.String(), "failed with its peer") {
				t.Errorf("no peer was lost:\n%s", j.stderr)
			}
		})
	}
}

// numbers returns lines of unsorted numbers, some of them equal.
func numbers(count int) []byte {
	var b bytes.Buffer
	for i := range count {
		fmt.Fprintln(&b, i*7919%(count/2)-count/4)
	}
	return b.Bytes()
}

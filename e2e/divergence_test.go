package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestDivergence runs a program whose replicas diverge, and expects that the system detects and
// reports the divergence, with the right consequences.
func TestDivergence(t *testing.T) {
	t.Parallel()
	// The replicas must diverge before another replica can be far enough ahead to become master. With many
	// steps, they diverge at one of the first. Then even a starved replica reaches that step, and the others
	// vote, before the rest of its rank has finished. With few steps, rank 1 waits at the end.
	const odd, few, many = "message 6 to rank 1", "10", "200"
	tests := []struct {
		name   string
		steps  string
		args   []string
		status int
		says   []string // expected on standard error
		never  string
	}{
		{"clock", many, []string{"-r", "2", "clock"}, 65, []string{"the replicas of rank 0 have diverged", "rank 0 replica 1 on peer", odd}, ""},
		{"environment", many, []string{"-r", "2", "environment"}, 65, []string{"the replicas of rank 0 have diverged", "rank 0 replica 1 on peer", odd}, ""},
		{"warned only", many, []string{"-r", "2", "--on-divergence", "warn", "clock"}, 0, []string{"rank 0 replica 1 on peer", odd}, ""},
		{"one of three", many, []string{"-r", "3", "corrupt=1"}, 0, []string{"rank 0 replica 1 was voted out", odd}, "lost"},
		{"the master of three", many, []string{"-r", "3", "corrupt=0"}, 65, []string{"the replicas of rank 0 have diverged", odd}, "voted out"},
		{"a last message is missing", few, []string{"-r", "2", "last"}, 65, []string{"the replicas of rank 0 have diverged", "on communicator 1"}, ""},
		{"a message to itself", few, []string{"-r", "2", "self"}, 65, []string{"the replicas of rank 0 have diverged", "messages to rank 0 on communicator 1"}, ""},
		{"printed output", few, []string{"-r", "2", "print"}, 65, []string{"the replicas of rank 0 have diverged", "has printed 18 bytes"}, ""},
		{"printed output, one of three", few, []string{"-r", "3", "print"}, 0, []string{"rank 0 replica 1 on peer", "does not count"}, "have diverged"},
		{"printed output, warned only", few, []string{"-r", "2", "-o", "out.txt", "--on-divergence", "warn", "print"}, 0, []string{"has printed 18 bytes", `whose files were collected: "out.txt" differs`}, "have diverged"},
		{"written files", few, []string{"-r", "2", "-o", "out.txt", "write"}, 65, []string{"the replicas of rank 0 have written different files", "out.txt"}, "have diverged"},
		{"written files, one of three", few, []string{"-r", "3", "-o", "out.txt", "write"}, 0, []string{"rank 0 replica 1 on peer", `has written different files than the replica whose files were collected: "out.txt" differs`}, "have diverged"},
		{"none", many, []string{"-r", "3", "none"}, 0, nil, "replica"},
	}
	peers := grid(t, 3, "--slots", "8")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			at := len(tt.args) - 1
			args := append([]string{"--home", t.TempDir(), "--supernode", peers[0].addr, "-n", "2", "-w", "60", "--timeout", "110s"}, tt.args[:at]...)
			j := startJob(t, append(args, filepath.Join(bin, "fickle"), "-steps", tt.steps, "-at", "5", tt.args[at])...)
			if s := j.wait(); s != tt.status {
				t.Errorf("exit status %d, want %d", s, tt.status)
			}
			said := strings.Join(strings.Fields(j.stderr.String()), " ") // unfold the lines
			for _, text := range tt.says {
				if !strings.Contains(said, text) {
					t.Errorf("p2prun did not print %q:\n%s", text, said)
				}
			}
			if tt.never != "" && strings.Contains(said, tt.never) {
				t.Errorf("p2prun printed %q:\n%s", tt.never, said)
			}
		})
	}
	expectNothingLeft(t, peers)
}

package e2e

import (
	"bytes"
	"crypto/sha256"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestManners runs programs that misbehave. Their output must arrive once and complete, the exit
// status must report how they ended, and nothing of them may be left.
func TestManners(t *testing.T) {
	t.Parallel()
	peers := grid(t, 4, "--slots", "1")
	is := func(want string) func(string) bool { return func(got string) bool { return got == want } }
	cases := map[string]struct {
		words  string
		status int
		says   string // expected on standard error
		out    func(string) bool
	}{
		"a flood of lines": {"init lines=200000 finalize", 0, "", func(out string) bool {
			return samePerRank(out, floodOutput(2, 200000)) == nil
		}},
		"lines of 5 MB": {"init long=5000000 finalize", 0, "", func(out string) bool {
			return sameLines(out, strings.Repeat("a", 4999999), strings.Repeat("b", 4999999))
		}},
		"bytes that are not text": {"init only=0 binary=3000000 finalize", 0, "", func(out string) bool {
			return sha256.Sum256([]byte(out)) == sha256.Sum256(noise(3000000))
		}},
		"closes its output":                 {"init say=hello close barrier finalize", 0, "", func(out string) bool { return sameLines(out, "rank 0 says hello", "rank 1 says hello") }},
		"leaves children with the pipes":    {"init say=hello orphans=2 finalize", 0, "", func(out string) bool { return sameLines(out, "rank 0 says hello", "rank 1 says hello") }},
		"the same without Init":             {"only=0 say=hello orphans=2", 0, "never called mpj.Init", nil},
		"no newline at the end":             {"init tail=x sleep=300ms tail=y finalize", 0, "", is("xy\nxy")},
		"keeps running after Finalize":      {"init stderr=hello finalize sleep=1s say=bye", 0, "hello", func(out string) bool { return sameLines(out, "rank 0 says bye", "rank 1 says bye") }},
		"finalizes twice":                   {"init finalize finalize", 0, "", is("")},
		"ends without Finalize":             {"init only=1 exit=0 barrier finalize", 70, "rank 1 lost all its replicas: replica 0 ended without calling Finalize", is("")},
		"fails in the middle":               {"init only=1 exit=4 barrier finalize", 4, "rank 1 exited with status 4", is("")},
		"fails after Finalize":              {"init finalize exit=6", 6, "exited with status 6", is("")},
		"joins twice":                       {"init init", 1, "has joined its job already", is("")},
		"a status that p2prun does not use": {"init only=1 exit=200 barrier finalize", 70, "exited with status 200", is("")},
		"large messages":                    {"init bulk=20000000 finalize", 0, "", is("")},
		"many small messages":               {"init small=50000 finalize", 0, "", is("")},
		"stops itself":                      {"init only=1 stop barrier finalize", 70, "has not answered its peer", is("")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			args := []string{"--home", peers[0].home, "-n", "2", "-r", "2", "-w", "60", "--timeout", "100s", filepath.Join(bin, "rude")}
			j := startJob(t, append(args, strings.Fields(c.words)...)...)
			if s := j.wait(); s != c.status {
				t.Errorf("exit status %d, want %d", s, c.status)
			}
			if text := j.stderr.String(); !strings.Contains(text, c.says) {
				t.Errorf("p2prun did not print %q:\n%s", c.says, text)
			}
			if out := j.stdout.String(); c.out != nil && !c.out(out) {
				t.Errorf("standard output has %d bytes: %.200q", len(out), out)
			}
			expectNothingLeft(t, peers)
		})
	}
}

// sameLines reports whether out consists of these lines, in any order.
func sameLines(out string, lines ...string) bool {
	got := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	slices.Sort(got)
	return strings.HasSuffix(out, "\n") && slices.Equal(got, lines)
}

// noise returns the output of rude on rank 0 for binary=n.
func noise(n int) []byte {
	var b bytes.Buffer
	for x := uint32(1); b.Len() < n; {
		x = x*1664525 + 1013904223
		b.WriteByte(byte(x >> 24))
	}
	return b.Bytes()
}

package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestWordcountOverTheGoDistribution counts the words of all .go files of the Go distribution on
// six peers, two of which are killed during the job. It compares the result with an independent count.
func TestWordcountOverTheGoDistribution(t *testing.T) {
	t.Parallel()
	expectWordcount(t, 0, losses[5:6])
}

// TestWordcountSurvives counts words during every kind of loss, in only the longest files unless
// -full is given. All runs use the same peers: killed peers boot again on their homes, with their
// caches.
func TestWordcountSurvives(t *testing.T) {
	t.Parallel()
	shortest := int64(512 << 10) // ten files, with a seventh of the text
	if *full {
		shortest = 0
	}
	expectWordcount(t, shortest, losses)
}

// expectWordcount counts the words of the .go files of the Go distribution that have at least the
// given size, once for each loss.
func expectWordcount(t *testing.T, shortest int64, losses []loss) {
	t.Helper()
	list, want := goFiles(t, shortest)
	peers := grid(t, 6, "--slots", "1")
	for _, c := range losses {
		t.Run(c.name, func(t *testing.T) {
			j := submit(t, t.TempDir(), "--supernode", peers[0].addr, "-n", "3", "-r", "2", "-w", "60", "-l", list,
				filepath.Join(bin, "wordcount"), "-all")
			j.waitRunning()
			c.lose(t, j, peers)
			if s := j.wait(); s != 0 {
				t.Fatalf("exit status %d", s)
			}
			compareCounts(t, j.stdout.String(), want)
			wake(peers)
			expectNothingLeft(t, peers)
			peers = reboot(t, peers)
		})
	}
}

// reboot boots the killed peers again, introduced by a live one.
func reboot(t *testing.T, peers []*peerProcess) []*peerProcess {
	t.Helper()
	alive := peers[slices.IndexFunc(peers, (*peerProcess).alive)]
	var out []*peerProcess
	for _, p := range peers {
		if !p.alive() {
			p = bootAt(alive.t, p.home, "--supernode", alive.addr, "--slots", "1")
		}
		out = append(out, p)
	}
	return out
}

// goFiles writes a list of the .go files of the Go distribution that have at least the given size.
// It counts their words independently of the example.
func goFiles(t *testing.T, shortest int64) (list string, counts map[string]int) {
	t.Helper()
	var names strings.Builder
	err := filepath.WalkDir(goEnv("GOROOT"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.HasSuffix(path, ".go") {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() >= shortest {
			names.WriteString(path + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	list = filepath.Join(t.TempDir(), "files")
	if err := os.WriteFile(list, []byte(names.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(bin, "words"), list).Output()
	if err != nil {
		t.Fatal(err)
	}
	counts = parseCounts(t, string(out))
	t.Logf("%d files, %d different words", strings.Count(names.String(), "\n"), len(counts))
	return list, counts
}

// parseCounts parses the lines "count word", one for each word. It skips the other output of
// wordcount.
func parseCounts(t *testing.T, out string) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			continue
		}
		n, err := strconv.Atoi(fields[0])
		if err != nil {
			continue
		}
		if _, twice := counts[fields[1]]; twice {
			t.Errorf("%q is printed twice", fields[1])
		}
		counts[fields[1]] = n
	}
	return counts
}

func compareCounts(t *testing.T, out string, want map[string]int) {
	t.Helper()
	got := parseCounts(t, out)
	wrong := 0
	for w, n := range want {
		if got[w] != n {
			if wrong++; wrong <= 5 {
				t.Errorf("%q counted %d times, want %d", w, got[w], n)
			}
		}
	}
	if wrong > 5 || len(got) != len(want) {
		t.Errorf("%d counts are wrong; %d words, want %d", wrong, len(got), len(want))
	}
}

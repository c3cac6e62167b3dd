package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/p2pmpi/p2pmpi/e2e/internal/farm"
	"github.com/p2pmpi/p2pmpi/e2e/internal/nemesis"
	"github.com/p2pmpi/p2pmpi/e2e/internal/traffic"
)

// A known program is one whose answer is known.
type known struct {
	options []string // of p2prun
	command []string
	// right checks the output of the job, and the files that it has collected in dir.
	right func(out, dir string) error
}

// program returns the program of a planned job.
func program(j nemesis.Job) known {
	random := rand.New(rand.NewPCG(j.Dice, 0))
	switch j.Program {
	case "ep":
		return known{command: run("ep", "-class", "W"), right: verified}
	case "is":
		return known{command: run("is", "-class", "A"), right: verified}
	case "farm":
		// On busy processors a task takes two to three times as long as on quiet ones.
		const tasks, every = 3_000, 150
		style, size := pick(random, "recv", "probe", "iprobe", "test", "waitany", "mixed"), pick(random, "2", "100")
		return known{
			command: run("farm", "-tasks", fmt.Sprint(tasks), "-every", fmt.Sprint(every), "-work", "50us", "-style", style, "-size", size),
			right:   func(out, _ string) error { return inOrderOfArrival(out, j.N, tasks, every) },
		}
	case "heat":
		return known{options: []string{"-o", "heat.png"}, command: run("heat", "-side", "95"), right: sameHeat}
	case "traffic":
		seed := random.Uint64()
		return known{
			command: run("traffic", "-rounds", "400", "-every", "20", "-most", "65536", "-pause", "10ms", "-seed", fmt.Sprint(seed)),
			right: func(out, _ string) error {
				return samePerRank(out, traffic.Output(seed, 400, 20, j.N, 65536))
			},
		}
	case "stepper":
		save := pick(random, "0", "40") // steps between checkpoints, or 0 for none
		return known{
			command: run("stepper", "-steps", "300", "-every", "10", "-work", "1ms", "-pause", "10ms", "-save", save, "-state", "1"),
			right:   func(out, _ string) error { return samePerRank(out, stepperOutput(j.N, 300, 10)) },
		}
	case "flood":
		return known{
			command: run("rude", "init", "barrier", "lines=40000", "barrier", "finalize"),
			right:   func(out, _ string) error { return samePerRank(out, floodOutput(j.N, 40000)) },
		}
	}
	panic("no such program: " + j.Program)
}

func run(program string, args ...string) []string {
	return append([]string{filepath.Join(bin, program)}, args...)
}

func pick[T any](random *rand.Rand, choices ...T) T { return choices[random.IntN(len(choices))] }

// verified expects exactly one report of a NAS kernel, with a successful verification.
func verified(out, _ string) error {
	if n := strings.Count(out, "Verification = SUCCESSFUL\n"); n != 1 {
		return fmt.Errorf("%d successful verifications in\n%s", n, out)
	}
	return nil
}

// alone returns the result of heat without a job.
var alone = sync.OnceValues(func() (heat, error) {
	dir, err := os.MkdirTemp("", "p2pmpi-e2e-heat-")
	if err != nil {
		return heat{}, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command(filepath.Join(bin, "heat"), "-side", "95")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return heat{}, fmt.Errorf("run heat alone: %w", err)
	}
	return heatOf(string(out), filepath.Join(dir, "heat.png"))
})

// heat is the result of the program heat.
type heat struct {
	lines   string
	picture []byte
}

// heatOf parses the result. It keeps only the lines that do not depend on the number of ranks.
func heatOf(out, picture string) (heat, error) {
	var h heat
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "steps ") || strings.HasPrefix(line, "centre ") {
			h.lines += line
		}
	}
	var err error
	h.picture, err = os.ReadFile(picture)
	return h, err
}

func sameHeat(out, dir string) error {
	want, err := alone()
	if err != nil {
		return err
	}
	got, err := heatOf(out, filepath.Join(dir, "heat.png"))
	if err != nil {
		return err
	}
	if got.lines != want.lines || !bytes.Equal(got.picture, want.picture) {
		return fmt.Errorf("%q and a picture of %d bytes, want %q and one of %d", got.lines, len(got.picture), want.lines, len(want.picture))
	}
	return nil
}

func joinLines(lines []string) string { return strings.Join(append(lines, ""), "\n") }

// samePerRank compares the lines of each rank, in order.
func samePerRank(out string, want []string) error {
	got := nemesis.ByRank(out)
	for rank, lines := range nemesis.ByRank(joinLines(want)) {
		for i, line := range lines {
			if i >= len(got[rank]) || got[rank][i] != line {
				return fmt.Errorf("line %d of rank %s is not %q", i, rank, line)
			}
		}
		if len(got[rank]) > len(lines) {
			return fmt.Errorf("rank %s has %d lines, want %d", rank, len(got[rank]), len(lines))
		}
		delete(got, rank)
	}
	if len(got) > 0 {
		return fmt.Errorf("lines of unknown ranks: %.200v", got)
	}
	return nil
}

// floodOutput returns the output of rude for lines=k.
func floodOutput(n, k int) []string {
	var out []string
	for rank := range n {
		for i := range k {
			out = append(out, fmt.Sprintf("rank %d line %d of a flood that nobody asked for", rank, i))
		}
	}
	return out
}

// inOrderOfArrival checks the output of farm: everything follows from the order of arrival, which rank 0
// has printed too.
func inOrderOfArrival(out string, n, tasks, every int) error {
	var took []int
	for line := range strings.Lines(out) {
		if list, ok := strings.CutPrefix(line, "rank 0 took "); ok {
			for word := range strings.FieldsSeq(strings.Trim(list, "[]\n")) {
				w, err := strconv.Atoi(word)
				if err != nil {
					return fmt.Errorf("line %q: %w", line, err)
				}
				took = append(took, w)
			}
		}
	}
	want, err := farm.Output(n, tasks, every, took)
	if err != nil {
		return fmt.Errorf("in the order of arrival: %w", err)
	}
	return samePerRank(out, want)
}

// TestWrongAnswersAreDetected checks that the answers of programs are rejected without the last
// line, with a repeated line, and with a changed line.
func TestWrongAnswersAreDetected(t *testing.T) {
	t.Parallel()
	took := slices.Repeat([]int{1, 2, 2, 1}, 250)
	farmed, err := farm.Output(3, len(took), 100, took)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		out   []string
		right func(out string) error
	}{
		"farm":    {farmed, func(out string) error { return inOrderOfArrival(out, 3, len(took), 100) }},
		"traffic": {traffic.Output(1, 100, 20, 3, 1000), func(out string) error { return samePerRank(out, traffic.Output(1, 100, 20, 3, 1000)) }},
		"flood":   {floodOutput(2, 100), func(out string) error { return samePerRank(out, floodOutput(2, 100)) }},
		"ep":      {[]string{"Verification = SUCCESSFUL"}, func(out string) error { return verified(out, "") }},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.right(joinLines(c.out)); err != nil {
				t.Errorf("the right answer: %v", err)
			}
			last := len(c.out) - 1
			for i := range c.out {
				changed := slices.Clone(c.out)
				changed[i] = strings.Replace(changed[i], changed[i][len(changed[i])-2:], "x]", 1)
				for name, wrong := range map[string][]string{
					"changed": changed, "twice": slices.Insert(slices.Clone(c.out), i, c.out[i]), "missing": slices.Delete(slices.Clone(c.out), i, i+1),
					"another at the end": append(slices.Clone(c.out), c.out[last-i]),
				} {
					if c.right(joinLines(wrong)) == nil {
						t.Errorf("line %d, %q, %s: accepted as right", i, c.out[i], name)
					}
				}
			}
		})
	}
}

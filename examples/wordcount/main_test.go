package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// An output is the output of the ranks of one run.
type output struct{ stdout, stderr []bytes.Buffer }

func runAll(n int, args ...string) (output, error) {
	out := output{make([]bytes.Buffer, n), make([]bytes.Buffer, n)}
	err := mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
		return run(w, args, &out.stdout[w.Rank()], &out.stderr[w.Rank()])
	})
	return out, err
}

// others returns the output of all ranks except 0.
func (o output) others() string {
	var b bytes.Buffer
	for rank := 1; rank < len(o.stdout); rank++ {
		b.Write(o.stdout[rank].Bytes())
		b.Write(o.stderr[rank].Bytes())
	}
	return b.String()
}

// modes runs test in all modes of wordcount, which must print the same table.
func modes(t *testing.T, test func(t *testing.T, n int, args ...string)) {
	for _, n := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) { test(t, n) })
		t.Run(fmt.Sprintf("n=%d farm", n), func(t *testing.T) { test(t, n, "-farm") })
	}
}

func TestTable(t *testing.T) {
	write(t, map[string]string{"one": "to be or not to be", "two/three": "that is the question: to be", "empty": ""})
	modes(t, func(t *testing.T, n int, args ...string) {
		out, err := runAll(n, append(args, "-top", "3")...)
		want := `count  word
    3  be
    3  to
    1  is

files     3
bytes     45
words     12
distinct  8
`
		if got := out.stdout[0].String(); err != nil || got != want {
			t.Errorf("rank 0 printed, with error %v,\n%s\nwant\n%s", err, got, want)
		}
		if got := out.others() + out.stderr[0].String(); got != "" {
			t.Errorf("other ranks printed: %q", got)
		}
	})
}

// TestCountsMatchAnIndependentCount counts text and binary data. Each pair of ranks exchanges
// several messages.
func TestCountsMatchAnIndependentCount(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	contents := make(map[string]string)
	var text strings.Builder
	for i := range 20 {
		file := randomText(random, 1+random.IntN(20_000))
		contents[fmt.Sprintf("folder%d/file%d", i%3, i)] = file
		text.WriteString(file + "\n")
	}
	write(t, contents)
	want, _ := reference(text.String())
	modes(t, func(t *testing.T, n int, args ...string) {
		out, err := runAll(n, append(args, "-all")...)
		if err != nil {
			t.Fatal(err)
		}
		if got := parseTable(out.stdout[0].String()); !maps.Equal(got, want) {
			t.Errorf("%d words, want %d, or their counts differ", len(got), len(want))
		}
	})
}

// parseTable returns the counts in a printed table. A word that occurs twice gets a wrong count.
func parseTable(printed string) map[string]int64 {
	counts := make(map[string]int64)
	for line := range strings.Lines(printed) {
		var n int64
		var word string
		if _, err := fmt.Sscan(line, &n, &word); err != nil {
			continue
		}
		if counts[word] > 0 {
			n = -1
		}
		counts[word] = n
	}
	return counts
}

// randomText returns text that contains a few short words and many long words between arbitrary
// bytes.
func randomText(random *rand.Rand, size int) string {
	var b strings.Builder
	for b.Len() < size {
		switch random.IntN(4) {
		case 0:
			b.WriteByte(byte(random.IntN(256)))
		case 1:
			b.WriteString([]string{"the", "of", "中文", "x_1"}[random.IntN(4)])
		case 2:
			fmt.Fprintf(&b, " word%d ", random.IntN(20_000))
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func TestEmptyFolder(t *testing.T) {
	write(t, nil)
	modes(t, func(t *testing.T, n int, args ...string) {
		out, err := runAll(n, args...)
		want := "count  word\n\nfiles     0\nbytes     0\nwords     0\ndistinct  0\n"
		if got := out.stdout[0].String(); err != nil || got != want {
			t.Errorf("rank 0 printed %q, %v", got, err)
		}
	})
}

// TestUnreadableFileIsAnError counts a listed file that no longer exists.
func TestUnreadableFileIsAnError(t *testing.T) {
	write(t, map[string]string{"here": "a"})
	files := []file{{"here", 1}, {"gone", 1}}
	for _, farm := range []bool{false, true} {
		for _, n := range []int{1, 3} {
			err := mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
				_, err := countShare(w.Comm, make(tally), files, farm)
				return err
			})
			if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "count words of gone: ") {
				t.Errorf("farm %v, %d ranks: %v", farm, n, err)
			}
		}
	}
}

func TestLinksAreReported(t *testing.T) {
	write(t, map[string]string{"file": "a"})
	if err := os.Symlink("file", "link"); err != nil {
		t.Fatal(err)
	}
	out, err := runAll(2)
	if got := out.stderr[0].String(); err != nil || !strings.Contains(got, `not a regular file): "link" and 0 others`) || out.others() != "" {
		t.Errorf("rank 0 wrote %q, the other ranks %q, %v", got, out.others(), err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"file"}, {"-top"}, {"-top", "x"}, {"-top", "-1"}, {"-what"}, {"-h"}} {
		if _, _, err := parse(args); !errors.Is(err, errUsage) {
			t.Errorf("arguments %q: %v", args, err)
		}
	}
	out, err := runAll(3, "-top", "x")
	if got := out.stdout[0].String() + out.others(); !errors.Is(err, errUsage) || got != "" {
		t.Errorf("the program printed %q, %v", got, err)
	}
}

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// put writes a file of the given name into a new directory and changes to that directory.
func put(t *testing.T, name, content string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func runAll(n int, args ...string) (string, error) {
	stdout := make([]bytes.Buffer, n)
	err := mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
		return run(w, args, &stdout[w.Rank()])
	})
	for rank := 1; rank < n; rank++ {
		if stdout[rank].Len() > 0 {
			err = errors.Join(err, fmt.Errorf("rank %d prints %q", rank, stdout[rank].String()))
		}
	}
	return stdout[0].String(), err
}

// sequential returns the expected output of samplesort.
func sequential(content string, integers bool) string {
	if content == "" {
		return ""
	}
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	slices.SortStableFunc(lines, func(a, b string) int {
		if !integers {
			return strings.Compare(a, b)
		}
		x, _ := strconv.ParseInt(strings.TrimSpace(a), 10, 64)
		y, _ := strconv.ParseInt(strings.TrimSpace(b), 10, 64)
		return cmp.Compare(x, y)
	})
	return strings.Join(lines, "\n") + "\n"
}

// repeated returns count lines, which one makes.
func repeated(count int, one func(i int) string) string {
	var b strings.Builder
	for i := range count {
		b.WriteString(one(i) + "\n")
	}
	return b.String()
}

func TestOutputMatchesASequentialSort(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	junk := make([]byte, 20_000)
	for i := range junk {
		junk[i] = byte(random.IntN(256))
	}
	long := strings.Repeat("long ", 40_000)
	for _, tc := range []struct {
		name, content string
		integers      bool
	}{
		{"empty", "", false},
		{"one line", "alone\n", false},
		{"no newline at the end", "b\na", false},
		{"empty lines", "\n\n\nx\n\n", false},
		{"fewer lines than ranks", "b\na\n", false},
		{"random", repeated(5000, func(int) string { return strconv.Itoa(random.IntN(1e6)) }), false},
		{"sorted", repeated(3000, func(i int) string { return fmt.Sprintf("%06d", i) }), false},
		{"all equal", repeated(3000, func(int) string { return "same" }), false},
		{"few keys", repeated(3000, func(int) string { return strconv.Itoa(random.IntN(3)) }), false},
		{"a line longer than buffers and parts", "z\n" + long + "\na\nm\n" + long + "x\n", false},
		{"one long line without a newline", long, false},
		{"arbitrary bytes", string(junk), false},
		{"lines that end in CR", "b\r\na\r\nb\n", false},
		{"integers", repeated(5000, func(int) string { return strconv.Itoa(random.IntN(2000) - 1000) }), true},
		{"equal integers keep their order", repeated(500, func(i int) string { return strings.Repeat("0", 1+i*7%11) + strconv.Itoa(i%4) }), true},
		{"greatest and least integer", "9223372036854775807\n0\n -5 \n-9223372036854775808\n", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			put(t, "in", tc.content)
			for _, n := range []int{1, 2, 5} {
				args := []string{"in"}
				if tc.integers {
					args = []string{"-integers", "in"}
				}
				stdout, err := runAll(n, args...)
				if err != nil {
					t.Fatalf("%d ranks: %v", n, err)
				}
				want := sequential(tc.content, tc.integers)
				if got, err := os.ReadFile("sorted.txt"); err != nil || string(got) != want {
					t.Errorf("%d ranks: %d bytes that begin with %.40q, %v; want %d that begin with %.40q", n, len(got), got, err, len(want), want)
				}
				if head := fmt.Sprintf("lines     %d\nbytes     %d\n", strings.Count(want, "\n"), len(want)); !strings.HasPrefix(stdout, head) {
					t.Errorf("%d ranks print %q, want %q", n, stdout, head)
				}
			}
		})
	}
}

func TestPartsFollowEachOther(t *testing.T) {
	content := repeated(1000, func(i int) string { return strconv.Itoa(i * 7919 % 1000) })
	put(t, "in", content)
	if _, err := runAll(3, "-parts", "-out", "part", "in"); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for rank := range 3 {
		part, err := os.ReadFile(fmt.Sprintf("part.%d", rank))
		if err != nil || len(part) == 0 {
			t.Errorf("part %d: %q, %v", rank, part, err)
		}
		got = append(got, part...)
	}
	if string(got) != sequential(content, false) {
		t.Error("the concatenated parts differ from the sorted lines")
	}
}

// TestNoRankHasMuchMoreThanItsShare checks the bound of regular sampling, for keys that would
// violate it without their position in the file.
func TestNoRankHasMuchMoreThanItsShare(t *testing.T) {
	const count, n = 6000, 4
	for name, one := range map[string]func(i int) string{
		"different":   func(i int) string { return strconv.Itoa(i * 7919 % count) },
		"sorted":      func(i int) string { return fmt.Sprintf("%06d", i) },
		"all equal":   func(int) string { return "same" },
		"half equal":  func(i int) string { return strconv.Itoa(max(0, i-count/2)) },
		"two of them": func(i int) string { return strconv.Itoa(i / (count / 2)) },
	} {
		put(t, "in", repeated(count, one))
		counts := make([]int, n)
		err := mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
			o := options{file: "in"}
			lines, err := readPart(w.Comm, o)
			if err == nil {
				lines, err = sortAll(w.Comm, o, lines)
			}
			counts[w.Rank()] = len(lines)
			return err
		})
		if err != nil || slices.Max(counts) > 2*count/n {
			t.Errorf("%s: %v of %d lines, %v", name, counts, count, err)
		}
	}
}

func TestVerifyDetectsUnsortedLines(t *testing.T) {
	for _, tc := range []struct {
		name  string
		parts []string
		wrong bool
	}{
		{"in order", []string{"a\nb\n", "b\nc\n", "d\n"}, false},
		{"within a rank", []string{"a\n", "c\nb\n", "d\n"}, true},
		{"between ranks", []string{"a\nc\n", "b\n", "d\n"}, true},
		{"past a rank without lines", []string{"b\n", "", "a\n"}, true},
		{"ranks without lines", []string{"", "", "a\n"}, false},
	} {
		err := mpj.RunLocal(context.Background(), len(tc.parts), func(w *mpj.World) error {
			return verify(w.Comm, options{}, split([]byte(tc.parts[w.Rank()]), 0))
		})
		if errors.Is(err, errWrong) != tc.wrong {
			t.Errorf("%s: verify returned %v", tc.name, err)
		}
	}
}

// TestEveryLineBelongsToOneRank reads a file in parts, with boundaries at all positions.
func TestEveryLineBelongsToOneRank(t *testing.T) {
	const content = "a\n\nbcd\n\n\nefghijk\nl"
	for a := range int64(len(content) + 1) {
		for b := a; b <= int64(len(content)); b++ {
			var all string
			for _, cut := range [][2]int64{{0, a}, {a, b}, {b, int64(len(content))}} {
				text, at, err := readLines(strings.NewReader(content), cut[0], cut[1])
				if err != nil || len(text) > 0 && !strings.HasPrefix(content[at:], string(text)) {
					t.Fatalf("part %v: read %q at %d, %v", cut, text, at, err)
				}
				all += string(text)
			}
			if all != content {
				t.Fatalf("cut at %d and %d: %q", a, b, all)
			}
		}
	}
}

func TestMistakesInTheFile(t *testing.T) {
	put(t, "in", "1\n2\n3x\n4\n5\n6\n")
	for _, n := range []int{1, 3} {
		if _, err := runAll(n, "-integers", "in"); !errors.Is(err, errInput) || !strings.Contains(err.Error(), `in:3: "3x" is not a whole number`) {
			t.Errorf("%d ranks: %v", n, err)
		}
		if _, err := runAll(n, "none"); !errors.Is(err, errInput) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%d ranks: %v", n, err)
		}
		if _, err := runAll(n, "."); !errors.Is(err, errInput) {
			t.Errorf("%d ranks: %v", n, err)
		}
	}
	if _, err := runAll(2, "-out", filepath.Join("none", "out"), "in"); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, errInput) {
		t.Error(err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"a", "b"}, {"-what", "a"}, {"-h"}, {"-out", "", "a"}} {
		if _, err := runAll(2, args...); !errors.Is(err, errUsage) {
			t.Errorf("arguments %q: %v", args, err)
		}
	}
}

// FuzzSplit checks that join reverses split, except for a newline at the end.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", "\n", "a", "a\n", "\n\na\x00\xff\nb"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want := slices.Clone(text)
		if len(text) > 0 && text[len(text)-1] != '\n' {
			want = append(want, '\n')
		}
		if got := join(split(text, 5)); !bytes.Equal(got, want) {
			t.Errorf("the joined lines are %q, want %q", got, want)
		}
	})
}

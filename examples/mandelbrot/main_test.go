package main

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// runAll runs the program with n ranks. It returns the output of rank 0, and the output of all other
// ranks.
func runAll(n int, args ...string) (stdout, stderr, others string, err error) {
	out, errs := make([]bytes.Buffer, n), make([]bytes.Buffer, n)
	err = mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
		return run(w, args, &out[w.Rank()], &errs[w.Rank()])
	})
	for rank := 1; rank < n; rank++ {
		others += out[rank].String() + errs[rank].String()
	}
	return out[0].String(), errs[0].String(), others, err
}

func TestPictureIsTheSameForEveryNumberOfRanks(t *testing.T) {
	var want []byte
	for _, n := range []int{1, 2, 3, 7} {
		file := filepath.Join(t.TempDir(), "set.png")
		stdout, stderr, others, err := runAll(n, "-width", "60", "-height", "40", "-limit", "200", "-png", file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Errorf("the picture of %d ranks differs from the picture of one rank", n)
		}
		if !strings.HasPrefix(stdout, "picture  "+file+", 60 x 40\nin set   ") || others != "" {
			t.Errorf("%d ranks printed %q and %q", n, stdout, others)
		}
		if lines := strings.Count(stderr, "\n"); lines != 10 || !strings.HasSuffix(stderr, "mandelbrot: 100 % done\n") {
			t.Errorf("%d ranks reported %q", n, stderr)
		}
	}
}

func TestPictureIsAPNGOfItsSize(t *testing.T) {
	file := filepath.Join(t.TempDir(), "set.png")
	if _, _, _, err := runAll(2, "-width", "31", "-height", "17", "-png", file); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil || img.Bounds().Dx() != 31 || img.Bounds().Dy() != 17 {
		t.Fatalf("the picture has bounds %v, %v", img.Bounds(), err)
	}
	if r, g, b, _ := img.At(15, 8).RGBA(); r+g+b != 0 {
		t.Error("the middle of the set is not black")
	}
	if r, g, b, _ := img.At(0, 0).RGBA(); r+g+b == 0 {
		t.Error("a point outside is black")
	}
}

func TestMoreRanksThanRows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "set.png")
	if _, _, _, err := runAll(6, "-width", "5", "-height", "2", "-png", file); err != nil {
		t.Error(err)
	}
}

func TestEscape(t *testing.T) {
	for _, tc := range []struct {
		name string
		x, y float64
		want int32
	}{
		{"origin", 0, 0, 0},
		{"cardioid", -0.5, 0.3, 0},
		{"circle", -1.1, 0.1, 0},
		{"tip, outside cardioid and circle", -2, 0, 0},
		{"far away", 3, 0, 2},
		{"just outside the cardioid's cusp", 0.2501, 0, 313},
		{"1 escapes after 4 steps", 1, 0, 4}, // 0, 1, 2, 5
	} {
		if got := escape(tc.x, tc.y, 1000); got != tc.want {
			t.Errorf("%s: %d steps, want %d", tc.name, got, tc.want)
		}
	}
}

// TestInsideMatchesTheIteration checks the formulas for cardioid and circle against the iteration.
func TestInsideMatchesTheIteration(t *testing.T) {
	for x := -2.0; x < 0.5; x += 0.013 {
		for y := 0.0; y < 1.2; y += 0.017 {
			z, c := complex(0, 0), complex(x, y)
			for range 200 {
				z = z*z + c
			}
			if inside(x, y) && !(real(z)*real(z)+imag(z)*imag(z) <= 4) {
				t.Fatalf("inside(%v) is true for a point outside", c)
			}
		}
	}
}

func TestRowsAreSymmetric(t *testing.T) {
	r := region{x: -0.65, span: 3, width: 40, height: 30, limit: 100}
	top, bottom := make([]int32, r.width), make([]int32, r.width)
	for row := range r.height / 2 {
		r.row(row, top)
		r.row(r.height-1-row, bottom)
		if !slices.Equal(top, bottom) {
			t.Errorf("row %d differs from its mirror image", row)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{"file"}, {"-what"}, {"-h"}, {"-width", "0"}, {"-width", "100000"}, {"-height", "-1"}, {"-limit", "0"},
		{"-span", "0"}, {"-span", "NaN"}, {"-x", "Inf"}, {"-png", ""}, {"-limit", "9999999999"},
	} {
		if _, _, _, err := runAll(2, args...); !errors.Is(err, errUsage) {
			t.Errorf("arguments %q: %v", args, err)
		}
	}
}

func TestUnwritableFile(t *testing.T) {
	_, _, _, err := runAll(3, "-width", "4", "-height", "4", "-png", filepath.Join(t.TempDir(), "none", "set.png"))
	if !errors.Is(err, os.ErrNotExist) || errors.Is(err, errUsage) {
		t.Error(err)
	}
}

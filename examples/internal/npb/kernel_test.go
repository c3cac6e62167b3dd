package npb

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// stub returns a kernel with a given result and error.
func stub(result Result, err error) Kernel {
	return Kernel{Name: "xx", Classes: []string{"S"}, Sequential: true, Run: func(r *Run) (Result, error) {
		if err := r.Start(); err != nil {
			return Result{}, err
		}
		if err := r.Communicate(func() error { return nil }); err != nil {
			return Result{}, err
		}
		return result, errors.Join(err, r.Stop())
	}}
}

var errBroken = errors.New("broken")

func TestReport(t *testing.T) {
	right := Result{Fields: []Field{Fieldf("Points", "%d", 7)}, Operations: 1e6, Verified: true}
	for _, tc := range []struct {
		name    string
		kernel  Kernel
		args    []string
		err     error
		has     []string
		without []string
	}{
		{
			name: "a correct result", kernel: stub(right, nil),
			has:     []string{" - XX Benchmark\n", " Class        = S\n", " Points       = 7\n", " Verification = SUCCESSFUL\n"},
			without: []string{"Messages", "Computing"},
		},
		{name: "with times", kernel: stub(right, nil), args: []string{"-times"}, has: []string{" Messages     = 0.", " Computing    = 0."}},
		{name: "an incorrect result", kernel: stub(Result{}, nil), err: errVerification, has: []string{" Verification = UNSUCCESSFUL\n"}},
		{name: "no result", kernel: stub(right, errBroken), err: errBroken, without: []string{"Verification"}},
		{name: "wrong usage", kernel: stub(right, nil), args: []string{"-class", "Z"}, err: ErrUsage, without: []string{"Verification"}},
	} {
		for _, n := range []int{0, 1, 3} { // 0 runs the kernel without a world
			t.Run(fmt.Sprintf("%s, %d ranks", tc.name, n), func(t *testing.T) {
				var stdout bytes.Buffer
				if err := execute(t, tc.kernel, n, tc.args, &stdout); !errors.Is(err, tc.err) {
					t.Errorf("the kernel returned %v, want %v", err, tc.err)
				}
				check(t, stdout.String(), tc.has, tc.without)
			})
		}
	}
}

// execute runs k as n ranks and returns the error of rank 0. The other ranks stay in the world until
// rank 0 returns.
func execute(t *testing.T, k Kernel, n int, args []string, stdout *bytes.Buffer) (err error) {
	t.Helper()
	if n == 0 {
		o, err := k.parse(args)
		if err != nil {
			return err
		}
		return k.execute(nil, o, stdout, &bytes.Buffer{})
	}
	if failed := mpj.RunLocal(t.Context(), n, func(w *mpj.World) error {
		if w.Rank() == 0 {
			err = k.Execute(w, args, stdout, &bytes.Buffer{})
			return nil
		}
		var nothing bytes.Buffer
		k.Execute(w, args, &nothing, &nothing)
		if nothing.Len() > 0 {
			t.Errorf("rank %d writes %q", w.Rank(), nothing.String())
		}
		return nil
	}); failed != nil {
		t.Fatal(failed)
	}
	return err
}

func check(t *testing.T, report string, has, without []string) {
	t.Helper()
	for _, text := range has {
		if !strings.Contains(report, text) {
			t.Errorf("no %q in the report:\n%s", text, report)
		}
	}
	for _, text := range without {
		if strings.Contains(report, text) {
			t.Errorf("%q in the report:\n%s", text, report)
		}
	}
}

func TestPowerOfTwo(t *testing.T) {
	for n, want := range map[int]bool{1: true, 2: true, 3: false, 4: true, 6: false, 8: false} {
		if err := mpj.RunLocal(t.Context(), n, func(w *mpj.World) error {
			err := (&Run{World: w, Class: "S"}).PowerOfTwo(4)
			if want && err != nil || !want && !errors.Is(err, ErrUsage) {
				t.Errorf("%d ranks: %v", n, err)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

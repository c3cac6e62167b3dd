package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// write creates a file with this content and returns its name.
func write(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "data.csv")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// runAll runs the program with n ranks and returns the output of rank 0. If another rank prints,
// runAll returns an error.
func runAll(n int, args ...string) (string, error) {
	stdout := make([]bytes.Buffer, n)
	err := mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
		return run(w, args, &stdout[w.Rank()])
	})
	for rank := 1; rank < n; rank++ {
		if stdout[rank].Len() > 0 {
			err = errors.Join(err, fmt.Errorf("rank %d printed %q", rank, stdout[rank].String()))
		}
	}
	return stdout[0].String(), err
}

func TestTable(t *testing.T) {
	file := write(t, "name,x,y\na,1,1\nb,1,3\nc,11,10\nd,9,10\n")
	for _, n := range []int{1, 2, 3, 7} {
		got, err := runAll(n, "-k", "2", file)
		want := fmt.Sprintf(`cluster  points  x   y
1        2       1   2
2        2       10  10

points   4
steps    2, no point moves any more
inertia  4
ranks    %d
`, n)
		if err != nil || got != want {
			t.Errorf("%d ranks: %v\n%s\nwant\n%s", n, err, got, want)
		}
	}
}

// lumps returns random points around the centres, one for each centre in turn.
func lumps(random *rand.Rand, count int, centres points) points {
	p := points{dims: centres.dims}
	for i := range count {
		for _, x := range centres.at(i % centres.count()) {
			p.coords = append(p.coords, x+random.NormFloat64())
		}
	}
	return p
}

// clusterAll clusters all points with n ranks and returns each rank's result.
func clusterAll(t *testing.T, n int, all points, k int, seedOf uint64) []clustering {
	t.Helper()
	results := make([]clustering, n)
	err := mpj.RunLocal(context.Background(), n, func(w *mpj.World) error {
		from, to := share(all.count(), w.Rank(), n)
		mine := points{all.dims, slices.Clone(all.coords[from*all.dims : to*all.dims])}
		centroids, err := seed(w.Comm, mine, k, rand.New(rand.NewPCG(seedOf, 0)))
		if err == nil {
			results[w.Rank()], err = cluster(w.Comm, mine, centroids, 100)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// TestClusteringMatchesThatOfOneRank clusters lumps with several ranks and with one rank. Every rank
// must get the same result.
func TestClusteringMatchesThatOfOneRank(t *testing.T) {
	seedOf := rand.Uint64()
	t.Logf("seed %d", seedOf)
	// The lumps are so far apart that the first centroids, drawn by the square of their distance,
	// are in different lumps. The probability that they are not is about one in ten million.
	const far = 2e4
	centres := points{3, []float64{0, 0, 0, far, 0, 5, 0, far, -5, far, far, 0}}
	all := lumps(rand.New(rand.NewPCG(seedOf, 1)), 400, centres)
	want := clusterAll(t, 1, all, 4, seedOf)[0]
	for _, n := range []int{2, 3, 8} {
		for rank, got := range clusterAll(t, n, all, 4, seedOf) {
			near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }
			if !slices.EqualFunc(got.centroids.coords, want.centroids.coords, near) || !slices.Equal(got.counts, want.counts) ||
				got.steps != want.steps || !got.converged || !near(got.inertia, want.inertia) {
				t.Errorf("rank %d of %d: %v, want %v", rank, n, got, want)
			}
		}
	}
	if !slices.Equal(want.counts, []int64{100, 100, 100, 100}) {
		t.Errorf("clusters of %d points", want.counts)
	}
}

// TestEachCentroidIsTheMiddleOfItsPoints checks the result against its definition.
func TestEachCentroidIsTheMiddleOfItsPoints(t *testing.T) {
	seedOf := rand.Uint64()
	t.Logf("seed %d", seedOf)
	random := rand.New(rand.NewPCG(seedOf, 2))
	all := points{dims: 2}
	for range 2 * 500 {
		all.coords = append(all.coords, random.Float64())
	}
	got := clusterAll(t, 3, all, 6, seedOf)[0]
	sums, inertia := newTotals(6, 2), 0.0
	for i := range all.count() {
		best, least := nearest(all.at(i), got.centroids)
		inertia += least
		sums.counts[best]++
		for j, x := range all.at(i) {
			sums.sums[best*2+j] += x
		}
	}
	for k, n := range sums.counts {
		for j, x := range got.centroids.at(k) {
			if math.Abs(sums.sums[k*2+j]/n-x) > 1e-9 {
				t.Errorf("centroid %d is at %v, the mean of its points is %v", k, x, sums.sums[k*2+j]/n)
			}
		}
	}
	if math.Abs(inertia-got.inertia) > 1e-9 {
		t.Errorf("inertia %v, want %v", got.inertia, inertia)
	}
}

func TestSameSeedSameBits(t *testing.T) {
	centres := points{2, []float64{0, 0, 1, 1, 0, 1}}
	all := lumps(rand.New(rand.NewPCG(1, 1)), 300, centres)
	a, b := clusterAll(t, 3, all, 5, 7)[0], clusterAll(t, 3, all, 5, 7)[0]
	if !slices.Equal(a.centroids.coords, b.centroids.coords) || a.inertia != b.inertia {
		t.Errorf("two runs differ: %v and %v", a, b)
	}
}

func TestPickNeverTakesAPointWithoutWeight(t *testing.T) {
	for _, tc := range []struct {
		weights []float64
		target  float64
		want    int
	}{
		{[]float64{1, 2, 3}, 0, 0}, {[]float64{1, 2, 3}, 1, 1}, {[]float64{1, 2, 3}, 5.9, 2},
		{[]float64{0, 1, 0}, 0, 1}, {[]float64{0, 1, 0}, 1, 1}, {[]float64{0, 1, 0}, 7, 1},
	} {
		if got := pick(tc.weights, tc.target); got != tc.want {
			t.Errorf("pick(%v, %v) = %d, want %d", tc.weights, tc.target, got, tc.want)
		}
	}
}

func TestLimitOfSteps(t *testing.T) {
	file := write(t, "x\n1\n2\n10\n11\n20\n")
	if got, err := runAll(2, "-k", "2", "-steps", "1", file); err != nil || !strings.Contains(got, "steps    1, the limit\n") {
		t.Errorf("the program printed %q, %v", got, err)
	}
}

func TestMistakesInTheData(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.csv")
	if _, err := runAll(3, "-k", "2", none); !errors.Is(err, errInput) || !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, tc := range []struct{ name, content, want string }{
		{"more clusters than points", "x\n1\n2\n", "4 clusters, but only 2 points"},
		{"more clusters than different points", "x\n1\n2\n1\n2\n1\n", "only 2 different points"},
		{"malformed", "x\n1\ntwo\n3\n4\n", `data.csv:3: column x: "two" is not a number`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, n := range []int{1, 3} {
				_, err := runAll(n, "-k", "4", write(t, tc.content))
				if !errors.Is(err, errInput) || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%d ranks: %v", n, err)
				}
			}
		})
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"f"}, {"-k", "0", "f"}, {"-k", "x", "f"}, {"-k", "2"}, {"-k", "2", "f", "g"}, {"-h"}, {"-k", "2", "-steps", "0", "f"}} {
		if _, err := runAll(2, args...); !errors.Is(err, errUsage) {
			t.Errorf("arguments %q: %v", args, err)
		}
	}
}

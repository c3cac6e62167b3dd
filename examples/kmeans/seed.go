package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// share returns the range of the count points that belongs to a rank: from is included, and to is
// not. The lengths of shares differ by at most one.
func share(count, rank, ranks int) (from, to int) {
	start := func(rank int) int { return rank*(count/ranks) + min(rank, count%ranks) }
	return start(rank), start(rank + 1)
}

// seed draws k of the ranks' points by k-means++. mine are the points of this rank. Every rank gets
// the same result.
func seed(c *mpj.Comm, mine points, k int, random *rand.Rand) (points, error) {
	drawn := points{dims: mine.dims}
	// The probability of drawing a point is proportional to its weight. At first all weights are
	// equal; later the weight is the square of the distance to the nearest drawn point.
	weights := make([]float64, mine.count())
	for i := range weights {
		weights[i] = 1
	}
	for drawn.count() < k {
		next, err := draw(c, mine, weights, random.Float64())
		if err != nil {
			return drawn, err
		}
		if next == nil {
			return drawn, fmt.Errorf("%w: %d clusters, but only %d different points", errInput, k, drawn.count())
		}
		drawn.coords = append(drawn.coords, next...)
		for i := range weights {
			d := squareDistance(mine.at(i), next)
			if drawn.count() == 1 || d < weights[i] {
				weights[i] = d
			}
		}
	}
	return drawn, nil
}

// draw returns, at every rank, the point at which the running sum of all ranks' weights passes the
// given part of the total. It returns nil when all weights are 0.
func draw(c *mpj.Comm, mine points, weights []float64, part float64) ([]float64, error) {
	sum := []float64{0}
	for _, w := range weights {
		sum[0] += w
	}
	sums := make([]float64, c.Size())
	if err := mpj.Allgather(c, sum, sums); err != nil {
		return nil, err
	}
	total, owner := 0.0, -1
	for rank, s := range sums {
		total += s
		if s > 0 {
			owner = rank // the last rank with a weight, unless the sum passes target earlier
		}
	}
	if owner < 0 {
		return nil, nil
	}
	target := part * total
	for rank, s := range sums {
		if target < s || rank == owner {
			owner = rank
			break
		}
		target -= s
	}
	point := make([]float64, mine.dims)
	if c.Rank() == owner {
		copy(point, mine.at(pick(weights, target)))
	}
	return point, mpj.Bcast(c, point, owner)
}

// pick returns the index at which the running sum of weights passes target. If rounding leaves the
// sum just below target, pick returns the last index with a positive weight.
func pick(weights []float64, target float64) int {
	last := 0
	for i, w := range weights {
		if w > 0 {
			last = i
		}
		if target < w {
			return i
		}
		target -= w
	}
	return last
}

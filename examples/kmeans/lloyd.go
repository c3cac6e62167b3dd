package main

import (
	"math"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// A clustering is a set of centroids and its properties.
type clustering struct {
	centroids points
	counts    []int64 // number of points of each centroid
	inertia   float64 // sum of the squared distances to the nearest centroid
	steps     int
	converged bool // false if the limit of steps was reached
}

// totals are the sums that the ranks compute in a step, in one vector for one message.
type totals struct {
	all     []float64
	sums    []float64 // sums of the coordinates in each cluster
	counts  []float64 // number of points in each cluster; exact up to 2^53
	moved   *float64  // number of points that have changed their cluster in this step
	inertia *float64
}

func newTotals(k, dims int) totals {
	all := make([]float64, k*dims+k+2)
	sums, rest := all[:k*dims], all[k*dims:]
	return totals{all, sums, rest[:k], &rest[k], &rest[k+1]}
}

// cluster moves the centroids until no point changes its cluster, but at most limit times. mine are
// the points of this rank; the result is the same at all ranks.
func cluster(c *mpj.Comm, mine, centroids points, limit int) (clustering, error) {
	k, dims := centroids.count(), centroids.dims
	result := clustering{centroids: centroids, counts: make([]int64, k)}
	belongs := make([]int, mine.count())
	for i := range belongs {
		belongs[i] = -1
	}
	t := newTotals(k, dims)
	for result.steps < limit && !result.converged {
		result.steps++
		clear(t.all)
		t.assign(mine, centroids, belongs)
		if err := mpj.Allreduce(c, t.all, t.all, mpj.Sum); err != nil {
			return result, err
		}
		t.move(centroids)
		result.inertia, result.converged = *t.inertia, *t.moved == 0
	}
	for i, n := range t.counts {
		result.counts[i] = int64(n)
	}
	return result, nil
}

// assign finds the nearest centroid of every point and adds the point to its totals.
func (t totals) assign(mine, centroids points, belongs []int) {
	for i := range belongs {
		p := mine.at(i)
		best, least := nearest(p, centroids)
		if belongs[i] != best {
			belongs[i] = best
			*t.moved++
		}
		*t.inertia += least
		t.counts[best]++
		sum := t.sums[best*len(p):][:len(p)]
		for j, x := range p {
			sum[j] += x
		}
	}
}

// nearest returns the index of the centroid nearest to p, and the square of its distance. Of several
// equally near centroids, it returns the first.
func nearest(p []float64, centroids points) (best int, least float64) {
	least = math.Inf(1)
	for k := range centroids.count() {
		if d := squareDistance(p, centroids.at(k)); d < least {
			best, least = k, d
		}
	}
	return best, least
}

// move moves every centroid to the mean of its points. A centroid without points stays.
func (t totals) move(centroids points) {
	for k, n := range t.counts {
		if n == 0 {
			continue
		}
		for j := range centroids.at(k) {
			centroids.at(k)[j] = t.sums[k*centroids.dims+j] / n
		}
	}
}

package core

import "slices"

// DimsCreate replaces the zeros in dims so that the product of all dimensions is ranks. The
// replacements are as close to each other as possible, in decreasing order. Nonzero dimensions stay
// unchanged, and ranks must be a multiple of their product.
func DimsCreate(ranks int, dims []int) error {
	if ranks < 1 {
		return Failf(ErrDims, "%d ranks", ranks)
	}
	free, rest := 0, ranks
	for i, d := range dims {
		switch {
		case d < 0:
			return Failf(ErrDims, "dims[%d] is %d", i, d)
		case d == 0:
			free++
		case rest%d != 0:
			return Failf(ErrDims, "%d ranks are not a multiple of the product of the dimensions in %v", ranks, dims)
		default:
			rest /= d
		}
	}
	if free == 0 && rest != 1 {
		return Failf(ErrDims, "the product of %v is not %d", dims, ranks)
	}
	factors := balanced(rest, free)
	for i, d := range dims {
		if d == 0 {
			dims[i], factors = factors[0], factors[1:]
		}
	}
	return nil
}

// balanced returns the count factors of n with the smallest sum, which are the closest to each
// other, in decreasing order.
func balanced(n, count int) []int {
	var best []int
	least := -1
	factors := make([]int, 0, count)
	divisors := divisorsOf(n)
	// try adds factors of rest, each at most limit, to the chosen factors.
	var try func(rest, limit, sum int)
	try = func(rest, limit, sum int) {
		if least >= 0 && sum >= least {
			return
		}
		if len(factors) == count {
			if rest == 1 {
				best, least = slices.Clone(factors), sum
			}
			return
		}
		for _, d := range divisors {
			if d <= limit && rest%d == 0 && reaches(d, count-len(factors), rest) {
				factors = append(factors, d)
				try(rest/d, d, sum+d)
				factors = factors[:len(factors)-1]
			}
		}
	}
	try(n, n, 0)
	return best
}

// reaches reports whether a product of count factors, each at most d, can be at least n.
func reaches(d, count, n int) bool {
	for ; count > 0 && n > 1; count-- {
		n = (n + d - 1) / d
	}
	return n <= 1
}

// divisorsOf returns the divisors of n in increasing order.
func divisorsOf(n int) []int {
	var low, high []int
	for d := 1; d <= n/d; d++ {
		if n%d == 0 {
			low = append(low, d)
			if d != n/d {
				high = append(high, n/d)
			}
		}
	}
	slices.Reverse(high)
	return append(low, high...)
}

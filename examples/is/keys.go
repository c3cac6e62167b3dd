package main

import "github.com/p2pmpi/p2pmpi/examples/internal/npb"

// makeKeys returns the keys with indices in [from, to). Each is the sum of
// four random numbers, so most are in the middle of the range.
func makeKeys(c class, from, to int) []int32 {
	const draws = 4
	keys := make([]int32, to-from)
	random := npb.Seed.Skip(uint64(draws * from))
	for i := range keys {
		var sum float64
		for range draws {
			var x float64
			random, x = random.Next()
			sum += x
		}
		keys[i] = int32(float64(c.maxKey()/draws) * sum)
	}
	return keys
}

// countBuckets adds the number of keys in each bucket to sizes. A bucket contains the keys with the
// same upper bits.
func countBuckets(keys, sizes []int32, shift int) {
	for _, k := range keys {
		sizes[k>>shift]++
	}
}

// group copies the keys to grouped, bucket by bucket. next is scratch space with one element per
// bucket.
func group(keys, grouped, sizes, next []int32, shift int) {
	at := int32(0)
	for b, n := range sizes {
		next[b] = at
		at += n
	}
	for _, k := range keys {
		b := k >> shift
		grouped[next[b]] = k
		next[b]++
	}
}

// divide assigns a run of buckets to each of the n ranks: ends[j] is the bucket after the last one
// of rank j. A run ends as soon as the ranks up to this one have their shares of all keys.
func divide(totals []int32, n int) (ends []int) {
	var all, sum int
	for _, size := range totals {
		all += int(size)
	}
	for b, size := range totals {
		sum += int(size)
		for len(ends) < n-1 && sum*n >= (len(ends)+1)*all {
			ends = append(ends, b+1)
		}
	}
	for len(ends) < n {
		ends = append(ends, len(totals))
	}
	return ends
}

// rankKeys sets below[k-low], for each possible key k, to the number of keys that are smaller than
// k. The keys are at least low and smaller than low + len(below) - 1. The last element of below is
// the number of keys.
func rankKeys(keys, below []int32, low int32) {
	clear(below)
	for _, k := range keys {
		below[k-low+1]++
	}
	var sum int32
	for i, n := range below {
		sum += n
		below[i] = sum
	}
}

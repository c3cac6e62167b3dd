package plan

import "slices"

// Batches is how many batches the operations of an item are divided into.
const Batches = 5

// Median warms up, has batch do the operations in batches and returns the seconds
// of one operation in the median batch. batch returns the seconds that its n
// operations took; all ranks of a contender call it with the same n.
func Median(count int, batch func(n int) (float64, error)) (float64, error) {
	if _, err := batch(count/10 + 1); err != nil {
		return 0, err
	}
	batches := min(Batches, count)
	n := count / batches
	times := make([]float64, batches)
	for i := range times {
		seconds, err := batch(n)
		if err != nil {
			return 0, err
		}
		times[i] = seconds / float64(n)
	}
	slices.Sort(times)
	return times[batches/2], nil
}

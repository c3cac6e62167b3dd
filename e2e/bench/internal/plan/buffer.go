package plan

// Touched returns a buffer of n elements that are all 1. The pages of a new, untouched buffer would
// all map to the system's single page of zeros, which is faster to read than memory.
func Touched[T byte | float64](n int) []T {
	b := make([]T, n)
	for i := range b {
		b[i] = 1
	}
	return b
}

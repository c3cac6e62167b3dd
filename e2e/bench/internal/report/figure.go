package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A Figure is the median of samples and their spread. A Figure without samples has N 0 and is shown
// as a dash.
type Figure struct {
	Median, Min, Max float64
	N                int
}

// FigureOf returns the Figure of samples.
func FigureOf(samples []float64) Figure {
	if len(samples) == 0 {
		return Figure{}
	}
	s := slices.Sorted(slices.Values(samples))
	middle := s[len(s)/2]
	if len(s)%2 == 0 {
		middle = (s[len(s)/2-1] + middle) / 2
	}
	return Figure{Median: middle, Min: s[0], Max: s[len(s)-1], N: len(s)}
}

// Map returns the figure in another unit. A decreasing function to, such as that from seconds to
// bytes per second, exchanges the minimum and maximum.
func (f Figure) Map(to func(float64) float64) Figure {
	if f.N == 0 {
		return f
	}
	least, greatest := to(f.Min), to(f.Max)
	return Figure{Median: to(f.Median), Min: min(least, greatest), Max: max(least, greatest), N: f.N}
}

// String returns the median with two or three digits and, for several samples, the spread.
func (f Figure) String() string {
	switch f.N {
	case 0:
		return "–"
	case 1:
		return short(f.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", short(f.Median), short(f.Min), short(f.Max))
}

// short formats a number with three digits, or as an integer if it has more.
func short(x float64) string {
	switch size := math.Abs(x); {
	case size >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case size >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// Size formats a number of bytes in the largest unit that divides it.
func Size(bytes int) string {
	switch {
	case bytes >= 1<<20 && bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d B", bytes)
}

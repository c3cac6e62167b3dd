package npb

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// A Result is the result of the computation of all ranks.
type Result struct {
	Fields     []Field
	Operations float64 // number of operations in the timed part, as NPB counts them
	Verified   bool
}

// A Field is a line of the report.
type Field struct{ Name, Value string }

// Fieldf returns a Field with a formatted value.
func Fieldf(name, format string, args ...any) Field {
	return Field{name, fmt.Sprintf(format, args...)}
}

// Near reports whether got differs from want by a relative error of at most epsilon. It returns
// false for a NaN.
func Near(got, want, epsilon float64) bool {
	return math.Abs((got-want)/want) <= epsilon
}

// report writes the report of r.
func (k Kernel) report(w io.Writer, r *Run, result Result) error {
	c := r.clock
	mops := result.Operations / 1e6 / c.seconds
	fields := append([]Field{{"Class", r.Class}}, result.Fields...)
	fields = append(fields,
		Fieldf("Ranks", "%d", r.Size()),
		Fieldf("Time", "%.2f seconds", c.seconds),
		Fieldf("Mop/s total", "%.2f", mops),
		Fieldf("Mop/s/rank", "%.2f", mops/float64(r.Size())))
	if c.times {
		fields = append(fields,
			Fieldf("Messages", "%.6f seconds at most in a rank", c.communication),
			Fieldf("Computing", "%.6f seconds at most in a rank", c.computing))
	}
	fields = append(fields, Field{"Verification", verdict(result.Verified)})

	text := fmt.Appendf(nil, "\n NAS Parallel Benchmarks - %s Benchmark\n\n", strings.ToUpper(k.Name))
	for _, f := range fields {
		text = fmt.Appendf(text, " %-12s = %s\n", f.Name, f.Value)
	}
	_, err := w.Write(append(text, '\n'))
	return err
}

func verdict(verified bool) string {
	if verified {
		return "SUCCESSFUL"
	}
	return "UNSUCCESSFUL"
}

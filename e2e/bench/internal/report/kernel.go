package report

import (
	"fmt"
	"strings"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
)

// Kernels returns a table of the NAS programs.
func (r *Results) Kernels(processes int) string {
	rows := [][]string{{"program", "", "total, s", "messages, s", "computing, s"}}
	for _, kernel := range plan.Kernels {
		for _, c := range r.contendersOf(kernel, processes) {
			key := key{Contender: c, Test: kernel}
			rows = append(rows, []string{
				strings.ToUpper(kernel), c.Name, r.seconds(key).String(),
				r.figure(key, messages).String(), r.figure(key, computing).String(),
			})
		}
	}
	if len(rows) == 1 {
		return ""
	}
	return markdown.Table(rows)
}

func messages(p plan.Result) (float64, bool)  { return optional(p.Messages) }
func computing(p plan.Result) (float64, bool) { return optional(p.Computing) }

func optional(x *float64) (float64, bool) {
	if x == nil {
		return 0, false
	}
	return *x, true
}

// A KernelTarget bounds the time of our program by Limit times the sum of the other program's communication time
// and our computing time.
type KernelTarget struct {
	Kernel       string
	Ours, Theirs Contender
	Limit        float64
}

// KernelTargets returns a table of the targets that have results.
func (r *Results) KernelTargets(targets []KernelTarget) string {
	rows := [][]string{{"program", "ours, s", "against", "their messages + our computing, s", "target", "measured", "met"}}
	for _, t := range targets {
		ours, theirs := key{t.Ours, t.Kernel, 0}, key{t.Theirs, t.Kernel, 0}
		total, theirMessages, ourComputing := r.seconds(ours), r.figure(theirs, messages), r.figure(ours, computing)
		if total.N == 0 || theirMessages.N == 0 {
			continue
		}
		bound := theirMessages.Median + ourComputing.Median
		ratio := total.Map(func(s float64) float64 { return s / bound })
		rows = append(rows, []string{
			strings.ToUpper(t.Kernel) + ", " + t.Ours.Name, short(total.Median), t.Theirs.Name,
			fmt.Sprintf("%s + %s", short(theirMessages.Median), short(ourComputing.Median)),
			fmt.Sprintf("≤ %.2f×", t.Limit), ratio.String() + "×", verdict(ratio.Median <= t.Limit),
		})
	}
	if len(rows) == 1 {
		return ""
	}
	return markdown.Table(rows)
}

// verdict returns "yes" in a table if a target is met.
func verdict(met bool) string {
	if met {
		return "yes"
	}
	return "**no**"
}

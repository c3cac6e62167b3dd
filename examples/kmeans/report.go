package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// print writes the centroids, in the order of their coordinates, and information about the
// computation.
func (r clustering) print(w io.Writer, names []string, ranks int) error {
	order := make([]int, r.centroids.count())
	total := int64(0)
	for k := range order {
		order[k] = k
		total += r.counts[k]
	}
	slices.SortStableFunc(order, func(a, b int) int { return slices.Compare(r.centroids.at(a), r.centroids.at(b)) })

	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "cluster\tpoints\t%s\n", strings.Join(names, "\t"))
	for i, k := range order {
		fmt.Fprintf(t, "%d\t%d", i+1, r.counts[k])
		for _, x := range r.centroids.at(k) {
			fmt.Fprintf(t, "\t%.6g", x)
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	end := "no point moves any more"
	if !r.converged {
		end = "the limit"
	}
	_, err := fmt.Fprintf(w, "\npoints   %d\nsteps    %d, %s\ninertia  %.6g\nranks    %d\n", total, r.steps, end, r.inertia, ranks)
	return err
}

package display

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// table formats rows, of which the first contains the titles. Below each of the other rows it adds the output of
// below.
func table(rows [][]string, below func(b *strings.Builder, row int)) string {
	var lines, b strings.Builder
	w := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	w.Flush()
	for i, line := range strings.Split(strings.TrimSuffix(lines.String(), "\n"), "\n") {
		fmt.Fprintln(&b, strings.TrimRight(line, " "))
		if i > 0 {
			below(&b, i-1)
		}
	}
	return b.String()
}

package main

import (
	"bufio"
	"fmt"
	"io"
)

// A table is the output of wordcount.
type table struct {
	entries  []entry // most frequent first
	totals   totals
	distinct int64
}

// print writes the entries, one per line, and the totals.
func (t table) print(w io.Writer) error {
	b := bufio.NewWriter(w)
	width := len("count")
	if len(t.entries) > 0 {
		width = max(width, len(fmt.Sprint(t.entries[0].Count)))
	}
	fmt.Fprintf(b, "%*s  word\n", width, "count")
	for _, e := range t.entries {
		fmt.Fprintf(b, "%*d  %s\n", width, e.Count, e.Word)
	}
	fmt.Fprintf(b, "\nfiles     %d\nbytes     %d\nwords     %d\ndistinct  %d\n",
		t.totals.files, t.totals.bytes, t.totals.words, t.distinct)
	return b.Flush() // the first error of all writes
}

package display

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
)

// Cache describes the contents of a cache, one per line: the beginning of its digest, its size, the time since
// its last use, and its purpose.
func Cache(c status.Cache, now time.Time) string {
	var b strings.Builder
	limit := ""
	if c.Limit > 0 {
		limit = " of " + size(c.Limit)
	}
	fmt.Fprintf(&b, "cache of %s: %s%s in %s\n", c.Home, size(c.Bytes), limit, number(int64(len(c.Contents)), "file", "files"))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, e := range c.Contents {
		fmt.Fprintf(table, "%.16s\t%s\t%v ago\t%s\n", e.Digest, size(e.Bytes), max(0, now.Sub(e.Used)).Round(time.Second), purpose(e))
	}
	table.Flush()
	return b.String()
}

// purpose describes the users and the source of a content.
func purpose(c filetransfer.Content) string {
	var parts []string
	switch {
	case c.Arriving:
		parts = append(parts, "incoming")
	case !c.Complete:
		parts = append(parts, "incomplete")
	}
	for i, job := range c.Jobs {
		if i == maxJobs {
			parts = append(parts, fmt.Sprintf("and %d more", len(c.Jobs)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("job %.8s", job))
	}
	if c.URL != "" {
		parts = append(parts, c.URL)
	}
	if len(parts) == 0 {
		return "unused"
	}
	return strings.Join(parts, ", ")
}

// maxJobs bounds the jobs that are listed for one content.
const maxJobs = 3

// Trimmed describes the result of trimming a cache.
func Trimmed(t status.Trimmed) string {
	return fmt.Sprintf("freed %s, %s left\n", size(t.Freed), size(t.Bytes))
}

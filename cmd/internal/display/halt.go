package display

import (
	"fmt"
	"strings"

	"github.com/p2pmpi/p2pmpi/peer/control/status"
)

// Fates describes in one line per job what happens to the jobs when their peer ends.
func Fates(h status.Halting) string {
	var b strings.Builder
	for _, j := range h.Jobs {
		where := names(j.Processes)
		if where == "" {
			where = "submitted from here"
		}
		fmt.Fprintf(&b, "job %.8s %s, %s: %s\n", j.Job, program(j.Program), where, j.Fate)
	}
	return b.String()
}

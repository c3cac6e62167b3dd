package display

import (
	"fmt"
	"strings"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/peer/control/doctor"
)

// Findings lists the diagnostics of a machine in lines of 80 columns, with advice for each problem.
func Findings(all []doctor.Finding) string {
	const column = "%-9s%s"
	var b strings.Builder
	for _, f := range all {
		b.WriteString(command.Sentence(fmt.Sprintf(column, f.Level, f.About), f.Found, routeWidth))
		if f.Do != "" {
			b.WriteString(command.Sentence(fmt.Sprintf(column, "", "do"), f.Do, routeWidth))
		}
	}
	return b.String()
}

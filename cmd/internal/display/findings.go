package display

import (
	"fmt"
	"strings"

	"github.com/p2pmpi/p2pmpi/cmd/internal/command"
	"github.com/p2pmpi/p2pmpi/peer"
)

// Findings says in lines of 80 columns what is well with a machine, and what to do about the
// rest.
func Findings(all []peer.Finding) string {
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

package suspend

import (
	"fmt"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
	"github.com/p2pmpi/p2pmpi/peer/owner/presence"
)

// A Policy is the owner's choice of when to suspend jobs, and how.
type Policy struct {
	Rules []presence.Rule
	Quiet policy.Hours // hours in which jobs are also suspended

	// Treatment applies to the jobs that cannot be migrated.
	Treatment Treatment
}

// Never reports whether nothing suspends jobs.
func (p Policy) Never() bool { return len(p.Rules) == 0 && len(p.Quiet) == 0 }

// A Treatment states what happens to jobs that cannot be migrated.
type Treatment struct {
	Continue bool          // they continue
	Most     time.Duration // otherwise they are suspended for this time at most, and then end
}

// Treatments other than a duration.
const (
	goOn = "go-on"
	end  = "end"
)

// ParseTreatment parses the value of the option --pause-jobs.
func ParseTreatment(text string) (Treatment, error) {
	switch text {
	case goOn:
		return Treatment{Continue: true}, nil
	case end:
		return Treatment{}, nil
	}
	most, err := time.ParseDuration(text)
	if err != nil || most < 0 {
		return Treatment{}, fmt.Errorf("pause-jobs %q: want %s, %s, or a time such as 30m", text, goOn, end)
	}
	return Treatment{Most: most}, nil
}

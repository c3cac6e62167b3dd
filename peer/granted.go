package peer

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
	"github.com/p2pmpi/p2pmpi/peer/internal/policy"
	"github.com/p2pmpi/p2pmpi/peer/launch"
)

// Granted is what a job may have here.
type Granted struct {
	limits.Grant
	Terms  []policy.Terms  `json:"terms"`  // of each class of submitters
	Unheld []launch.Unheld `json:"unheld"` // limits that the kernel does not hold programs to
}

// granted returns what a job may have here; nil: nothing runs here.
func (p *Peer) granted() *Granted {
	if p.launcher == nil {
		return nil
	}
	return &Granted{p.launcher.Grant(), p.policy.Terms(p.confines()), p.launcher.Unheld(p.policy.Limits()...)}
}

// sayUnheld tells the owner at boot which limits do not hold as they should.
func (p *Peer) sayUnheld() {
	for _, u := range p.launcher.Unheld(p.policy.Limits()...) {
		p.log.Warn().Str("limit", string(u.Limit)).Str("why", u.Why).Str("instead", u.Instead).
			Msg("a limit of programs cannot be enforced here")
	}
}

// judgeGranted gives a finding for each limit that does not hold; g is nil if no peer runs.
func judgeGranted(g *Granted) (out []Finding) {
	if g == nil {
		return nil
	}
	const do = "let p2pboot make control groups, see docs/security.md: start it by systemd-run --user --scope -p Delegate=yes, or as root"
	for _, u := range g.Unheld {
		out = append(out, Finding{"limit of " + string(u.Limit), Warning, fmt.Sprintf("not enforced: %s; instead, %s", u.Why, u.Instead), do})
	}
	if len(out) == 0 {
		out = append(out, well("limits", "programs are held to all that are set"))
	}
	return out
}

package peer

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
)

// Granted describes the limits of jobs on this machine.
type Granted struct {
	limits.Grant
	Terms  []policy.Terms      `json:"terms"`  // for each class of submitters
	Unheld []launch.Unenforced `json:"unheld"` // limits that the kernel does not enforce
}

// granted returns the limits of jobs here; nil if this peer hosts none.
func (p *Peer) granted() *Granted {
	if p.launcher == nil {
		return nil
	}
	return &Granted{p.launcher.Grant(), p.policy.Terms(p.sandboxComplete()), p.launcher.Unenforced(p.policy.Limits()...)}
}

// logUnheld logs the limits that the kernel does not enforce.
func (p *Peer) logUnheld() {
	for _, u := range p.launcher.Unenforced(p.policy.Limits()...) {
		p.log.Warn().Str("limit", string(u.Limit)).Str("why", u.Why).Str("instead", u.Instead).
			Msg("a limit of programs cannot be enforced here")
	}
}

// checkGranted returns a finding for each limit that is not enforced; g is nil if no peer runs.
func checkGranted(g *Granted) (out []Finding) {
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

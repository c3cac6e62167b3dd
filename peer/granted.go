package peer

import "github.com/p2pmpi/p2pmpi/peer/control/status"

// granted returns the limits of jobs here; nil if this peer hosts none.
func (p *Peer) granted() *status.Granted {
	if p.launcher == nil {
		return nil
	}
	return &status.Granted{
		Grant:  p.launcher.Grant(),
		Terms:  p.policy.Terms(p.sandboxComplete()),
		Unheld: p.launcher.Unheld(p.policy.Limits()...),
	}
}

// logUnheld logs the limits that the kernel does not enforce.
func (p *Peer) logUnheld() {
	for _, u := range p.launcher.Unheld(p.policy.Limits()...) {
		p.log.Warn().Str("limit", string(u.Limit)).Str("why", u.Why).Str("instead", u.Instead).
			Msg("a limit of programs cannot be enforced here")
	}
}

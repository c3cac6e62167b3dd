package peer

import (
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
	"github.com/p2pmpi/p2pmpi/peer/owner/presence"
	"github.com/p2pmpi/p2pmpi/peer/owner/suspend"
)

// presenceEvery is the interval between checks of the suspend rules.
const presenceEvery = 10 * time.Second

// suspendPolicy returns the owner's suspend rules.
func (c Config) suspendPolicy() (out suspend.Policy, err error) {
	if out.Rules, err = presence.ParseRules(c.PauseWhen); err != nil {
		return out, err
	}
	if out.Quiet, err = policy.ParseHours(c.QuietHours); err != nil {
		return out, err
	}
	out.Treatment, err = suspend.ParseTreatment(c.PauseJobs)
	return out, err
}

// startSuspending suspends the jobs of other users while the owner needs the machine.
func (p *Peer) startSuspending() error {
	rules, err := p.cfg.suspendPolicy()
	if err != nil || rules.Never() {
		return err
	}
	done := make(chan struct{})
	go func() { // ends with the peer's life
		defer close(done)
		tick := time.NewTicker(presenceEvery)
		defer tick.Stop()
		p.suspend.Run(p.life, rules, hostedJobs{p.launcher}, presence.NewMachine("/"), tick.C)
	}()
	p.owns("suspend rules", func() error { <-done; return nil })
	return nil
}

// hostedJobs are the jobs that the suspend rules apply to.
type hostedJobs struct{ *launch.Service }

// Suspend pauses the hosted jobs by a rule, or resumes them if it is empty.
func (h hostedJobs) Suspend(rule string, most time.Duration) {
	h.Pause(launch.Pause{Rule: rule, Most: most})
}

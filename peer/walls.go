package peer

import (
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/launch"
)

// examineSandbox determines which sandbox layers work on this machine, and logs the missing ones.
func (p *Peer) examineSandbox() {
	p.walls = launch.ExamineWalls(string(p.home))
	lacks := p.walls.Lacks()
	for _, lack := range lacks {
		p.log.Warn().Str("wall", string(lack.Wall)).Str("why", lack.Why).Bool("refused", p.cfg.RequireConfinement).
			Msg("native programs cannot be confined here")
	}
	if why := p.walls.NoLandlock; why != "" && len(lacks) == 0 {
		p.log.Info().Msgf("native programs are sandboxed, but without Landlock as a second layer: %s", why)
	}
}

// unprotected returns the resources that the sandbox does not protect.
func (p *Peer) unprotected() []status.Unprotected {
	if p.role != Volunteer {
		return []status.Unprotected{}
	}
	return status.UnprotectedBy(p.walls)
}

package peer

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/peer/launch"
)

// Unprotected is a resource of this machine that the sandbox does not protect from native programs.
type Unprotected struct {
	Wall string `json:"wall"` // file system, network or processes
	Why  string `json:"why"`
}

// examineSandbox determines which sandbox layers work on this machine, and logs the missing ones.
func (p *Peer) examineSandbox() {
	p.walls = launch.ExamineSandbox(string(p.home))
	for _, gap := range p.walls.Gaps() {
		p.log.Warn().Str("wall", string(gap.Resource)).Str("why", gap.Why).Bool("refused", p.cfg.RequireConfinement).
			Msg("native programs cannot be confined here")
	}
	if why := landlockGap(p.walls); why != "" {
		p.log.Info().Msgf("native programs are sandboxed, but without Landlock as a second layer: %s", why)
	}
}

// unprotected returns the resources that the sandbox does not protect.
func (p *Peer) unprotected() []Unprotected {
	out := []Unprotected{} // a list in JSON even when empty
	if p.role != Volunteer {
		return out
	}
	for _, gap := range p.walls.Gaps() {
		out = append(out, Unprotected{string(gap.Resource), gap.Why})
	}
	return out
}

// landlockGap returns the reason why Landlock is missing as a second layer. It is empty if Landlock works,
// or if the first layer is incomplete.
func landlockGap(w launch.Sandbox) (why string) {
	if len(w.Gaps()) > 0 {
		return ""
	}
	return w.NoLandlock
}

// checkSandbox returns a finding for each missing sandbox layer.
func checkSandbox(w launch.Sandbox) (out []Finding) {
	const do = "let p2pboot make user namespaces, see docs/security.md; until then strangers' native programs are refused, unless --require-confinement=false"
	for _, gap := range w.Gaps() {
		out = append(out, Finding{"confinement: " + string(gap.Resource), Warning, fmt.Sprintf("native programs are not kept from it: %s", gap.Why), do})
	}
	if len(out) > 0 {
		return out
	}
	if why := landlockGap(w); why != "" {
		return []Finding{well("confinement", "native programs are sandboxed, but without Landlock as a second layer: %s", why)}
	}
	return []Finding{well("confinement", "native programs see neither files, network nor processes of this machine")}
}

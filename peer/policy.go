package peer

import (
	"errors"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
	"github.com/p2pmpi/p2pmpi/peer/internal/policy"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// policy is what the owner has decided for the peer self, of a private network or not.
func (c Config) policy(self p2ppeer.ID, private bool, m limits.Machine) (policy.Policy, error) {
	allow, err1 := peerIDs("allow", c.Allow)
	deny, err2 := peerIDs("deny", c.Deny)
	strangers, err3 := limits.Strangers(m, c.Slots).With(c.SlotLimits)
	rules, err4 := policy.ParseRules(c.Accept, strangers)
	quiet, err5 := policy.ParseHours(c.QuietHours)
	return policy.Policy{
		Self: self, Private: private, Allow: allow, Deny: deny, Rules: rules, Quiet: quiet,
		Unconfined: !c.RequireConfinement,
	}, errors.Join(err1, err2, err3, err4, err5)
}

// confines reports whether every wall around native programs stands.
func (p *Peer) confines() bool { return len(p.walls.Lacks()) == 0 }

// announced are the kinds of programs that this peer's offer names.
func (p *Peer) announced() (names []string) {
	for _, kind := range p.policy.Announced(p.confines()) {
		names = append(names, string(kind))
	}
	return names
}

// sayPolicy tells the owner which programs of whom this peer takes.
func (p *Peer) sayPolicy() {
	line := p.log.Info().Int("allow", len(p.policy.Allow)).Int("deny", len(p.policy.Deny))
	for _, class := range policy.Classes {
		line = line.Str(string(class), string(p.policy.Rules[class].Kind))
	}
	line.Msg("who may run what")
	if also := p.policy.Beside(p.cfg.Accept); len(also) > 0 {
		log := p.log.Warn()
		for class, kind := range also {
			log = log.Str(string(class), string(kind))
		}
		log.Msg("a list of whom to allow keeps nobody out: to take nothing from others, set accept: [none]")
	}
}

// leastDisk is how much disk has to be free for a job of others to be taken, in bytes: its files, what
// its processes write, and the journal.
const leastDisk = 64 << 20

// fullDisk reports whether less than that is free where the home is.
func (p *Peer) fullDisk() bool {
	free := p.cfg.diskFree(string(p.home))
	return free >= 0 && free < leastDisk
}

// machine is what holds here now.
func (p *Peer) machine(now time.Time) policy.Machine {
	return policy.Machine{Confined: p.confines(), Paused: p.pausedBy() != "", NoDisk: p.fullDisk(), Now: now}
}

// decide asks the owner's policy about the kinds of programs that a submitter's job has for this
// machine.
func (p *Peer) decide(submitter p2ppeer.ID, kinds []policy.Kind) policy.Decision {
	return p.policy.Decide(p.machine(time.Now()), policy.Request{Submitter: submitter, Kinds: kinds})
}

// judge is decide for the reservation service, before anything is sent.
func (p *Peer) judge(q reservation.Request, now time.Time) reservation.Verdict {
	kinds := make([]policy.Kind, len(q.Kinds))
	for i, k := range q.Kinds {
		kinds[i] = policy.Kind(k)
	}
	d := p.policy.Decide(p.machine(now), policy.Request{Submitter: q.Submitter, Kinds: kinds})
	return reservation.Verdict{Refused: refusals[d.Refused], Class: string(d.Class), Slots: d.Slots}
}

// refusals are the policy's as a submitter hears them.
var refusals = map[policy.Refusal]reservation.Reason{
	policy.Denied:     reservation.Denied,
	policy.WasmOnly:   reservation.WasmOnly,
	policy.Unconfined: reservation.Unconfined,
	policy.Paused:     reservation.Paused,
	policy.NoDisk:     reservation.NoDisk,
}

package peer

import (
	"errors"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// policy returns the owner's policy for the peer self; private reports whether the network is private.
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

// sandboxComplete reports whether the sandbox for native programs is complete.
func (p *Peer) sandboxComplete() bool { return len(p.walls.Gaps()) == 0 }

// announced returns the kinds of programs in this peer's offer.
func (p *Peer) announced() (names []string) {
	for _, kind := range p.policy.Announced(p.sandboxComplete()) {
		names = append(names, string(kind))
	}
	return names
}

// logPolicy logs the kinds of programs that each class of submitters may run.
func (p *Peer) logPolicy() {
	line := p.log.Info().Int("allow", len(p.policy.Allow)).Int("deny", len(p.policy.Deny))
	for _, class := range policy.Classes {
		line = line.Str(string(class), string(p.policy.Rules[class].Kind))
	}
	line.Msg("rights of each class of submitters")
	if also := p.policy.Beside(p.cfg.Accept); len(also) > 0 {
		log := p.log.Warn()
		for class, kind := range also {
			log = log.Str(string(class), string(kind))
		}
		log.Msg("a list of allowed peers does not exclude others: to refuse all other peers, set accept: [none]")
	}
}

// leastDisk is the free disk space that a job of another user requires, in bytes. It is for the job's
// files, the output of its processes, and the journal.
const leastDisk = 64 << 20

// fullDisk reports whether the home's file system has less than leastDisk free.
func (p *Peer) fullDisk() bool {
	free := p.cfg.diskFree(string(p.home))
	return free >= 0 && free < leastDisk
}

// machine returns the machine's present state as the policy needs it.
func (p *Peer) machine(now time.Time) policy.Machine {
	return policy.Machine{Confined: p.sandboxComplete(), Paused: p.pausedBy() != "", NoDisk: p.fullDisk(), Now: now}
}

// decide applies the owner's policy to a submitter's job with the given kinds of programs for this machine.
func (p *Peer) decide(submitter p2ppeer.ID, kinds []policy.Kind) policy.Decision {
	return p.policy.Decide(p.machine(time.Now()), policy.Request{Submitter: submitter, Kinds: kinds})
}

// judge applies the policy for the reservation service, before any file is sent.
func (p *Peer) judge(q reservation.Request, now time.Time) reservation.Verdict {
	kinds := make([]policy.Kind, len(q.Kinds))
	for i, k := range q.Kinds {
		kinds[i] = policy.Kind(k)
	}
	d := p.policy.Decide(p.machine(now), policy.Request{Submitter: q.Submitter, Kinds: kinds})
	return reservation.Verdict{Refused: refusals[d.Refused], Class: string(d.Class), Slots: d.Slots}
}

// refusals maps the policy's refusals to the reasons that submitters receive.
var refusals = map[policy.Refusal]reservation.Reason{
	policy.Denied:     reservation.Denied,
	policy.WasmOnly:   reservation.WasmOnly,
	policy.Unconfined: reservation.Unconfined,
	policy.Paused:     reservation.Paused,
	policy.NoDisk:     reservation.NoDisk,
}

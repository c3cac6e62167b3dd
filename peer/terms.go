package peer

import (
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
	"github.com/p2pmpi/p2pmpi/peer/owner/suspend"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// terms decide which jobs of other users run here: the owner's policy, and the state of the machine.
type terms struct {
	policy   policy.Policy
	sandbox  launch.Sandbox // layers of the sandbox for native programs
	suspend  *suspend.Service
	home     homedir.Dir
	diskFree func(dir string) int64
}

func (t *terms) sandboxComplete() bool { return len(t.sandbox.Gaps()) == 0 }

// announced returns the kinds of programs in this peer's offer.
func (t *terms) announced() (names []string) {
	for _, kind := range t.policy.Announced(t.sandboxComplete()) {
		names = append(names, string(kind))
	}
	return names
}

// busy reports whether this peer now refuses all jobs of other users.
func (t *terms) busy() bool { return t.suspend.Rule() != "" || t.fullDisk() }

// fullDisk reports whether the home's file system has less than policy.LeastDisk free.
func (t *terms) fullDisk() bool {
	free := t.diskFree(string(t.home))
	return free >= 0 && free < policy.LeastDisk
}

// machine returns the machine's current state as the policy needs it.
func (t *terms) machine(now time.Time) policy.Machine {
	return policy.Machine{Confined: t.sandboxComplete(), Suspended: t.suspend.Rule() != "", NoDisk: t.fullDisk(), Now: now}
}

// decide applies the owner's policy to a submitter's job with the given kinds of programs for this machine.
func (t *terms) decide(submitter p2ppeer.ID, kinds []policy.Kind) policy.Decision {
	return t.policy.Decide(t.machine(time.Now()), policy.Request{Submitter: submitter, Kinds: kinds})
}

// judge applies the policy for the reservation service, before any file is sent.
func (t *terms) judge(q reservation.Request, now time.Time) reservation.Verdict {
	kinds := make([]policy.Kind, len(q.Kinds))
	for i, k := range q.Kinds {
		kinds[i] = policy.Kind(k)
	}
	d := t.policy.Decide(t.machine(now), policy.Request{Submitter: q.Submitter, Kinds: kinds})
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

// logPolicy logs the kinds of programs that each class of submitters may run. accept is the owner's setting.
func (t *terms) logPolicy(log zerolog.Logger, accept []string) {
	line := log.Info().Int("allow", len(t.policy.Allow)).Int("deny", len(t.policy.Deny))
	for _, class := range policy.Classes {
		line = line.Str(string(class), string(t.policy.Rules[class].Kind))
	}
	line.Msg("rights of each class of submitters")
	if others := t.policy.OthersMayRun(accept); len(others) > 0 {
		warning := log.Warn()
		for class, kind := range others {
			warning = warning.Str(string(class), string(kind))
		}
		warning.Msg("a list of allowed peers does not exclude others: to refuse all other peers, set accept: [none]")
	}
}

func (t *terms) logSandbox(log zerolog.Logger) {
	gaps := t.sandbox.Gaps()
	for _, gap := range gaps {
		log.Warn().Str("wall", string(gap.Resource)).Str("why", gap.Why).Bool("refused", !t.policy.Unconfined).
			Msg("native programs cannot be confined here")
	}
	if why := t.sandbox.NoLandlock; why != "" && len(gaps) == 0 {
		log.Info().Msgf("native programs are sandboxed, but without Landlock as a second layer: %s", why)
	}
}

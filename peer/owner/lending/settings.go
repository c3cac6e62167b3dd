package lending

import (
	"errors"
	"fmt"
	"runtime"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/peer/owner/machine"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
	"github.com/p2pmpi/p2pmpi/peer/owner/presence"
	"github.com/p2pmpi/p2pmpi/peer/owner/suspend"
)

// Settings are the owner's settings for lending the machine to other users.
type Settings struct {
	// Slots is the number of processes that may run here at once. More slots than processors slow down
	// every process. With 0 slots the peer only introduces other peers and submits jobs.
	Slots int

	// MaxJobs is the number of jobs that may hold slots here at once. Zero means no limit.
	MaxJobs int

	// SlotLimits are the limits of one process, JobLimits those of all processes of a job together. The
	// entries are memory=SIZE, cpu=PERCENT% of one processor, disk=SIZE, processes=N, files=N,
	// time=DURATION and upload=SIZE per second. Each value may be none. Limits that are not listed keep
	// their defaults, which depend on the machine.
	SlotLimits, JobLimits []string

	// Allow lists the peer IDs of submitters whose native programs the owner trusts; Deny lists those that
	// never get slots. Accept applies to all other submitters. The owner's lists always win (S3).
	Allow, Deny []string

	// Accept lists rules: the kinds of programs that each class of submitters may run, and on how many
	// slots. See policy.ParseRules.
	Accept []string

	// PauseWhen lists the rules for suspending jobs: active, battery, load and metered, or "none" alone.
	// See package presence.
	PauseWhen []string

	// PauseJobs is the treatment of other users' jobs that cannot be migrated while the owner needs the machine:
	// go-on, end, or a duration. A job that is suspended for longer than the duration ends.
	PauseJobs string

	// RequireConfinement refuses native programs if this machine cannot sandbox them completely. Programs
	// of this peer's own user and of submitters in Allow are exempt.
	RequireConfinement bool

	// QuietHours lists times of the day, such as 08:00-18:30, when jobs are suspended: the peer accepts no jobs
	// of other users and hands over those that can be migrated. PauseJobs applies to the rest.
	QuietHours []string
}

// Default returns the settings of an owner who has configured none: all processors, sandboxed.
func Default() Settings {
	return Settings{
		Slots:              runtime.NumCPU(),
		PauseWhen:          presence.Default,
		PauseJobs:          "1h",
		RequireConfinement: true,
	}
}

// Validate reports all invalid fields at once. Each error names the field's option.
func (s Settings) Validate() error {
	var wrong []error
	check := func(err error) { wrong = append(wrong, err) }
	if s.Slots < 0 || s.Slots > policy.MaxSlots {
		check(fmt.Errorf("slots %d: want 0 to %d", s.Slots, policy.MaxSlots))
	}
	if s.MaxJobs < 0 {
		check(fmt.Errorf("max-jobs %d: want 0 (no limit) or more", s.MaxJobs))
	}
	if _, err := limits.Parse(s.SlotLimits); err != nil {
		check(fmt.Errorf("slot-limits: %w", err))
	}
	if _, err := limits.ParseJob(s.JobLimits); err != nil {
		check(fmt.Errorf("job-limits: %w", err))
	}
	_, err := policy.ParseIDs("allow", s.Allow)
	check(err)
	_, err = policy.ParseIDs("deny", s.Deny)
	check(err)
	_, err = policy.ParseRules(s.Accept, limits.Limits{})
	check(err)
	_, err = policy.ParseHours(s.QuietHours)
	check(err)
	_, err = presence.ParseRules(s.PauseWhen)
	check(err)
	_, err = suspend.ParseTreatment(s.PauseJobs)
	check(err)
	return errors.Join(wrong...) // without those that are nil
}

// Policy returns the owner's policy for the peer self; private reports whether the network is private. home
// is the folder that holds the scratch folders.
func (s Settings) Policy(self p2ppeer.ID, private bool, home string) (policy.Policy, error) {
	allow, err1 := policy.ParseIDs("allow", s.Allow)
	deny, err2 := policy.ParseIDs("deny", s.Deny)
	strangers, err3 := limits.Strangers(machineAt(home), s.Slots).With(s.SlotLimits)
	rules, err4 := policy.ParseRules(s.Accept, strangers)
	quiet, err5 := policy.ParseHours(s.QuietHours)
	return policy.Policy{
		Self: self, Private: private, Allow: allow, Deny: deny, Rules: rules, Quiet: quiet,
		Unconfined: !s.RequireConfinement,
	}, errors.Join(err1, err2, err3, err4, err5)
}

// SuspendPolicy returns the owner's suspend rules.
func (s Settings) SuspendPolicy() (out suspend.Policy, err error) {
	if out.Rules, err = presence.ParseRules(s.PauseWhen); err != nil {
		return out, err
	}
	if out.Quiet, err = policy.ParseHours(s.QuietHours); err != nil {
		return out, err
	}
	out.Treatment, err = suspend.ParseTreatment(s.PauseJobs)
	return out, err
}

// Grant returns the limits of jobs on this machine, for the given number of slots. home is the folder that
// holds the scratch folders.
func (s Settings) Grant(home string, slots int) (limits.Grant, error) {
	return limits.Default(machineAt(home), slots).With(s.SlotLimits, s.JobLimits)
}

// machineAt returns the machine's resources that limits apply to; the disk is that of home.
func machineAt(home string) limits.Machine {
	m := limits.Machine{Disk: machine.DiskFree(home)}
	if memory := machine.Memory(); memory != 0 && memory != machine.Unlimited {
		m.Memory = int64(memory)
	}
	return m
}

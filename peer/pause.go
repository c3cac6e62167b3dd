package peer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/owner/presence"
)

// presenceEvery is the interval between checks of the suspend rules.
const presenceEvery = 10 * time.Second

// Treatments of jobs that cannot be migrated, besides a duration: see Config.PauseJobs.
const (
	pauseGoOn = "go-on"
	pauseEnd  = "end"
)

// parsePauseJobs parses Config.PauseJobs: the jobs go on, or are suspended for the duration most and then
// end.
func parsePauseJobs(text string) (goOn bool, most time.Duration, err error) {
	switch text {
	case pauseGoOn:
		return true, 0, nil
	case pauseEnd:
		return false, 0, nil
	}
	if most, err = time.ParseDuration(text); err != nil || most < 0 {
		return false, 0, fmt.Errorf("pause-jobs %q: want %s, %s, or a time such as 30m", text, pauseGoOn, pauseEnd)
	}
	return false, most, nil
}

// startPresence pauses the peer while its owner needs the machine. A paused peer accepts no jobs of other
// users and hands over the jobs that can be migrated. Config.PauseJobs determines what happens to the
// others.
func (p *Peer) startPresence() error {
	rules, err := presence.ParseRules(p.cfg.PauseWhen)
	if err != nil {
		return err
	}
	if len(rules) == 0 && len(p.cfg.QuietHours) == 0 {
		return nil
	}
	done := make(chan struct{})
	go func() { // ends with the peer's life
		defer close(done)
		tick := time.NewTicker(presenceEvery)
		defer tick.Stop()
		p.watchOwner(presence.NewMachine("/"), rules, tick.C)
	}()
	p.owns("presence", func() error { <-done; return nil })
	return nil
}

// watchOwner checks the suspend rules now and at each tick, and pauses or resumes the peer. It closes
// machine when the peer's life ends.
func (p *Peer) watchOwner(machine *presence.Machine, rules []presence.Rule, ticks <-chan time.Time) {
	jobsGoOn, most, _ := parsePauseJobs(p.cfg.PauseJobs) // already validated
	defer machine.Close()
	watch, now := presence.NewWatch(rules), time.Now()
	goOn := func() {} // ends the handover
	defer func() { goOn() }()
	for before := presence.Rule(""); ; {
		reading := machine.Read(p.life, rules)
		reading.Quiet = p.policy.Quiet.Contain(now)
		p.logUnread(reading.Unread)
		rule := watch.Step(reading, now)
		if rule != before {
			p.log.Info().Str("rule", string(rule)).Msg("pause")
			p.paused.Store(string(rule))
			if !jobsGoOn {
				p.launcher.Pause(launch.Pause{Rule: string(rule), Most: most})
			}
		}
		switch {
		case before == "" && rule != "":
			ctx, cancel := context.WithCancel(p.life)
			over := make(chan struct{})
			go func() { // ends with ctx
				defer close(over)
				p.launcher.HandOver(ctx)
			}()
			goOn = func() { cancel(); <-over }
		case before != "" && rule == "":
			goOn()
			goOn = func() {}
		}
		before = rule
		select {
		case now = <-ticks:
		case <-p.life.Done():
			return
		}
	}
}

// logUnread stores the suspend rules that cannot be evaluated, and logs those that are new.
func (p *Peer) logUnread(all []presence.Unread) {
	before := p.unread()
	p.unreadRules.Store(all)
	for _, u := range all {
		if !slices.ContainsFunc(before, func(b presence.Unread) bool { return b.Rule == u.Rule }) {
			p.log.Warn().Str("rule", string(u.Rule)).Str("why", u.Why).Msg("a suspend rule cannot be evaluated")
		}
	}
}

// unread returns the suspend rules that cannot be evaluated on this machine.
func (p *Peer) unread() []presence.Unread {
	all, _ := p.unreadRules.Load().([]presence.Unread)
	return all
}

// pausedBy returns the rule by which the peer is paused; empty if it is not paused.
func (p *Peer) pausedBy() string {
	rule, _ := p.paused.Load().(string)
	return rule
}

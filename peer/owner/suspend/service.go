package suspend

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/peer/owner/presence"
)

// Jobs are the jobs of other users on this machine.
type Jobs interface {
	// Suspend suspends the jobs that cannot be migrated. They end after the time most. An empty rule resumes
	// them.
	Suspend(rule string, most time.Duration)
	// HandOver migrates the jobs that can run elsewhere, until ctx ends.
	HandOver(ctx context.Context)
}

// A Service suspends and resumes the jobs here by the owner's rules. Its methods are safe for concurrent use.
type Service struct {
	log    zerolog.Logger
	rule   atomic.Value // string
	unread atomic.Value // []presence.Unread
}

// New returns a Service. No rule applies until Run evaluates the rules.
func New(log zerolog.Logger) *Service { return &Service{log: log} }

// Rule returns the rule by which jobs are suspended, or "" if none applies.
func (s *Service) Rule() string {
	rule, _ := s.rule.Load().(string)
	return rule
}

// Unread returns the rules that cannot be evaluated on this machine.
func (s *Service) Unread() []presence.Unread {
	all, _ := s.unread.Load().([]presence.Unread)
	return all
}

// Run evaluates the rules now and at each tick, until ctx ends. Then it closes machine.
func (s *Service) Run(ctx context.Context, policy Policy, jobs Jobs, machine *presence.Machine, ticks <-chan time.Time) {
	defer machine.Close()
	watch, now := presence.NewWatch(policy.Rules), time.Now()
	resume := func() {} // ends the handover
	defer func() { resume() }()
	for before := presence.Rule(""); ; {
		reading := machine.Read(ctx, policy.Rules)
		reading.Quiet = policy.Quiet.Contain(now)
		s.keepUnread(reading.Unread)
		rule := watch.Step(reading, now)
		if rule != before {
			s.log.Info().Str("rule", string(rule)).Msg("pause")
			s.rule.Store(string(rule))
			if !policy.Treatment.Continue {
				jobs.Suspend(string(rule), policy.Treatment.Most)
			}
		}
		switch {
		case before == "" && rule != "":
			resume = handOver(ctx, jobs)
		case before != "" && rule == "":
			resume()
			resume = func() {}
		}
		before = rule
		select {
		case now = <-ticks:
		case <-ctx.Done():
			return
		}
	}
}

// handOver starts to migrate jobs. The returned function stops the handover and waits for its end.
func handOver(ctx context.Context, jobs Jobs) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() { // ends with ctx
		defer close(over)
		jobs.HandOver(ctx)
	}()
	return func() { cancel(); <-over }
}

// keepUnread stores the rules that cannot be evaluated, and logs those that are new.
func (s *Service) keepUnread(all []presence.Unread) {
	before := s.Unread()
	s.unread.Store(all)
	for _, u := range all {
		if !slices.ContainsFunc(before, func(b presence.Unread) bool { return b.Rule == u.Rule }) {
			s.log.Warn().Str("rule", string(u.Rule)).Str("why", u.Why).Msg("a suspend rule cannot be evaluated")
		}
	}
}

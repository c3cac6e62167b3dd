package job

import (
	"fmt"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// form makes the peers of these links, in their order, and the submitter's members of
// the fault detector's group, of the current generation.
func (e *execution) form(links []*link) error {
	cfg := e.j.s.cfg
	var group []p2ppeer.ID
	for _, l := range links {
		group = append(group, l.peer)
	}
	self := slices.Index(group, cfg.Host.ID())
	if self < 0 {
		self = len(group)
		group = append(group, cfg.Host.ID())
	}
	failed := make(chan int, len(group)) // each member can fail once, so the detector never waits
	detector, err := cfg.Detector.Join(faultdetect.GroupConfig{
		Job: jobpb.GroupAgain(e.j.spec.ID, e.generation), Members: group, Self: self,
		Period: cfg.Period, Offset: firstHeartbeat, Hang: cfg.Hang, Mode: cfg.Mode,
		Verdict: func(v faultdetect.Verdict) {
			if v.State == faultdetect.Failed {
				failed <- v.Member
			}
		},
	})
	if err != nil {
		return fmt.Errorf("join the fault detector: %w", err)
	}
	e.group, e.failed, e.detector, e.grouped = group, failed, detector, time.Now()
	return nil
}

// joinMessage asks for a place in the group.
func (e *execution) joinMessage() *jobpb.ToPeer {
	m := joinMessage(e.j.s.cfg, e.group...)
	m.GetJoin().Generation = e.generation
	return m
}

// regroupAfter is less than a member needs to be found silent: who says so earlier says
// it of a group that has been replaced.
const regroupAfter = time.Second

// regroup has those who are left begin anew to watch each other, now that the submitter
// is in touch with them again: who was taken for failed in a group stays so there,
// and nobody can tell whether it was they who were silent or the submitter. The new
// group finds those who really are.
func (e *execution) regroup() {
	before := e.detector
	e.generation++
	links := slices.DeleteFunc(slices.Clone(e.links), func(l *link) bool {
		return l.err != nil || l.retired || l.recruit != nil || l.group != nil
	})
	if err := e.form(links); err != nil {
		e.j.log.Warn().Err(err).Msg("in touch again, but nobody watches the job's peers anew")
		return
	}
	before.Close()
	m := e.joinMessage()
	for _, l := range links {
		l.say(m)
	}
	e.j.log.Info().Uint32("generation", e.generation).Int("peers", len(links)).Msg("in touch with the job's peers again")
	if e.held != nil {
		e.j.warn("in touch with the job's peers again")
	}
	e.held = nil
}

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
	detector, err := cfg.Detector.Join(faultdetect.GroupConfig{
		Job: jobpb.GroupAgain(e.j.spec.ID, e.generation), Members: group, Self: self,
		Period: cfg.Period, Offset: firstHeartbeat, Hang: e.hang(), Mode: cfg.Mode,
		Verdict: func(v faultdetect.Verdict) {
			if v.Member < len(links) {
				e.verdict(links[v.Member], v)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("join the fault detector: %w", err)
	}
	e.group, e.detector, e.grouped = group, detector, time.Now()
	return nil
}

// silence says that the detector has failed a peer. It may be called at any time.
func (e *execution) silence(l *link) {
	l.silent.Store(true)
	signal(e.quiet)
}

// regroupAfter is less than a member needs to be found silent: who says so earlier says
// it of a group that has been replaced.
const regroupAfter = time.Second

// regroup has those who are left begin anew to watch each other, now that the submitter
// is in touch with them again: who was taken for failed in a group stays so there,
// and nobody can tell whether it was they who were silent or the submitter. The new
// group finds those who really are. Those who have come later are of it, too.
func (e *execution) regroup() {
	before := e.detector
	e.generation++
	links := slices.DeleteFunc(slices.Clone(e.links), func(l *link) bool {
		return l.err != nil || l.retired || l.recruit != nil
	})
	if err := e.form(links); err != nil {
		e.j.log.Warn().Err(err).Msg("in touch again, but nobody watches the job's peers anew")
		return
	}
	before.Close()
	m := e.joinMessage(e.group...)
	for _, l := range links {
		if l.group != nil {
			l.group.Close()
			l.group = nil
		}
		l.silent.Store(false)
		l.unheard.since.Store(0) // the new group begins with all live
		l.say(m)
	}
	e.j.log.Info().Uint32("generation", e.generation).Int("peers", len(links)).Msg("in touch with the job's peers again")
	if e.held != nil {
		e.j.warn("in touch with the job's peers again")
	}
	e.held = nil
}

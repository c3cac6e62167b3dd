package submit

import (
	"fmt"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// form makes the peers of these links, in this order, and the submitter's peer members of a
// detector group of the current generation.
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

// silence records that the detector has failed a peer. Any goroutine may call it.
func (e *execution) silence(l *link) {
	l.silent.Store(true)
	signal(e.quiet)
}

// regroupAfter is shorter than the time in which a detector group finds a silent member. An earlier
// report of silence stems from the previous group.
const regroupAfter = time.Second

// regroup starts a new detector group now that the submitter is in touch again. A member that a
// group has failed stays failed in it, and it is unknown whether that member or the submitter was
// cut off. The new group finds the peers that are really silent. It includes the peers that joined
// the job later.
func (e *execution) regroup() {
	before := e.detector
	e.generation++
	links := slices.DeleteFunc(slices.Clone(e.peers.links), func(l *link) bool {
		return l.err != nil || l.retired || l.recruit != nil
	})
	if err := e.form(links); err != nil {
		e.j.log.Warn().Err(err).Msg("reconnected, but failure detection could not be restarted")
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
		l.suspicion.since.Store(0) // all members of the new group start live
		l.send(m)
	}
	e.j.log.Info().Uint32("generation", e.generation).Int("peers", len(links)).Msg("reconnected to the job's peers")
	if e.deferredFailures != nil {
		e.j.warn("reconnected to the job's peers")
	}
	e.deferredFailures = nil
}

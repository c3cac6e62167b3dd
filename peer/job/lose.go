package job

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
)

// suspect has the detector ask a peer that another one reports as failed. The
// report alone fails nobody. When it is about the submitter's own peer, that has been
// cut off for a while.
func (e *execution) suspect(m *jobpb.Suspect) {
	switch id := p2ppeer.ID(m.GetPeer()); {
	case id != e.j.s.cfg.Host.ID():
		e.detector.Report(id) // it does not know strangers
	case e.views != nil && !e.parted && m.GetGeneration() == e.generation && time.Since(e.grouped) > regroupAfter:
		e.regroup()
	}
}

var errSilent = errors.New("its heartbeat has stopped")

// hearSilence takes the detector's verdicts.
func (e *execution) hearSilence() (r *Result) {
	for _, l := range e.links {
		if l.silent.Swap(false) {
			r = cmp.Or(r, e.silent(l))
		}
	}
	return r
}

// silent handles the detector's verdict that a peer has failed. While this peer is not
// in touch with the majority, it may be itself that nobody hears.
func (e *execution) silent(l *link) *Result {
	switch {
	case l.err != nil || l.retired:
		return nil
	case l.recruit != nil:
		return e.hearRecruit(heard{link: l, err: errSilent})
	case e.parted || e.adopted != nil:
		return e.strand(l, nil)
	case e.views == nil || e.views.Contact() == viewgroup.InTouch:
		return e.miss(l)
	case e.held == nil:
		e.j.warn("no word from the job's peers: this machine may be cut off; waiting for the majority of them")
	}
	e.held = append(e.held, l)
	return nil
}

// miss gives up a peer that is silent.
func (e *execution) miss(l *link) *Result {
	if l.err != nil || l.retired { // of a retired peer detach has said it
		return nil
	}
	cs, _ := e.contacts()
	r := e.lose(l, "it has been silent for too long", errSilent)
	if r != nil && r.Status == StatusLost && e.j.req.R == 1 && len(cs) > 0 {
		*r = outOfReach(cs)
	}
	return r
}

func (e *execution) linkTo(id p2ppeer.ID) *link {
	for _, l := range e.links {
		if l.peer == id {
			return l
		}
	}
	return nil
}

// breach gives up a peer that said what no peer says.
func (e *execution) breach(l *link, err error) *Result {
	e.avoided.Distrust(l.peer)
	return e.lose(l, "it broke the protocol", err)
}

func (e *execution) lose(l *link, why string, err error) *Result {
	e.j.log.Info().Stringer("peer", l.peer).Err(err).Msg("peer lost")
	l.lose(err)
	e.detach(l)
	e.avoid(l.peer)
	if e.j.req.Explain {
		e.explain()
	}
	return e.apply(e.watch.Lost(l.processes, fmt.Sprintf("failed with its peer %s: %s", short(l.peer), why)))
}

// detach has nobody wait for a peer's heartbeat or its vote any more.
func (e *execution) detach(l *link) {
	switch {
	case l.group != nil:
		l.group.Close()
		l.group = nil
	case e.detector != nil && l.recruit == nil:
		e.detector.Gone(l.peer)
	}
	if e.views != nil { // it does not know strangers either
		e.views.Gone(l.peer)
	}
}

package launch

import (
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/internal/viewgroup"
)

// A job whose submitter is silent goes on where its peers agree on views without it. They
// then ask for the changes that the submitter would ask for:
//
//	a process here has ended, or        each peer, of its own
//	  counts again after it was set aside
//	a peer does not answer              each peer whose fault detector finds that peer silent; the one that
//	                                      leads the group only if it gets no answer itself. A majority
//	                                      of its jurors has to say so (package viewgroup)
//	a process came later, and its peer  every peer: it is the submitter's own
//	  is not known
//
// They go on doing so when it comes back as a new process, which has no log of the views:
// that one is told what is agreed on, and asks for changes through them, and for those to be
// taken in that it has found to replace who was lost.
//
// What the processes print waits for the submitter, as far as there is room, and so do
// the files of those that have ended; their slots do not, unless that is much (kept.go).

const (
	// missFor is how long a job bears a silent submitter in any case: longer than one
	// waits that is out of touch.
	missFor = 20 * time.Second
	// standInAfter is how long the submitter is silent before others ask for changes of
	// the view: then it takes none of them before it has heard what they follow from, if
	// it comes back (package job, away.go).
	standInAfter = 10 * time.Second
	// maxAway bounds how long a submitter can have a job go on without it.
	maxAway = time.Hour
	// silentFor is how long a peer does not answer who leads before its processes fail,
	// beside the tolerated hang. One that has come later is in no other group, so nobody asks it
	// through others.
	silentFor = 4 * time.Second
)

var errSubmitterFailed = errors.New("the submitter's peer has failed")

// bear takes note of how long the job is to go on without its submitter.
func (j *job) bear(m *jobpb.Start) {
	j.away, j.returns = min(max(time.Duration(m.AwayNs), 0), maxAway), m.Returns
	if m.LeftNs > 0 {
		j.until = time.Now().Add(time.Duration(m.LeftNs))
	}
}

// miss says that the submitter is silent.
func (j *job) miss() {
	if j.missed.IsZero() {
		j.missed = time.Now()
		j.log.Info().Msg("the submitter is out of reach; the job goes on without it")
	}
	j.take(j.ahead) // it brings the row no more
}

// orphan has the peers make the views: the submitter is a new process, which is told of them.
func (j *job) orphan() {
	j.miss()
	j.orphaned = true
	j.views.Gone(j.submitter) // the process that had the log
	for _, c := range j.changes {
		j.say(agreed(c))
	}
	if j.views.Contact() == viewgroup.CutOff {
		j.say(outside())
	}
}

// standIn does for a submitter that is silent what cannot wait for it.
func (j *job) standIn() {
	if j.missed.IsZero() {
		return
	}
	if j.orphaned && j.attached != nil && !j.waits() {
		j.missed = time.Now() // it is here, and makes no views
	}
	limit := missFor + j.away
	if j.waits() || j.keys == nil && !j.returns { // it has not begun, and nobody else can begin it
		limit = missFor
	}
	if time.Since(j.missed) > limit || !j.until.IsZero() && time.Now().After(j.until) {
		j.end(errSubmitterFailed)
		return
	}
	if !j.orphaned && time.Since(j.missed) < standInAfter {
		return
	}
	for _, p := range j.view.Processes() {
		if to := j.becomes(p); j.view.Live(p) && to != view.Live && !(to == view.Failed && j.listensTo(p)) {
			j.views.Propose(viewgroup.Change{Process: p, To: to})
		}
	}
	j.letNoneJoin()
	for _, p := range j.local {
		if p.upToDate.Since != 0 {
			j.views.Propose(viewgroup.Change{Process: p.id, To: view.Live, Since: p.upToDate.Term, At: p.upToDate.Since})
		}
	}
	j.windDown()
}

// waits reports whether the process here is to join the job, and waits in mpj.Init. Where
// nobody lets it begin for long it has not joined, or is waited for by others.
func (j *job) waits() bool { return j.joining && j.keys == nil }

// becomes returns what this peer knows that a live process has become.
func (j *job) becomes(p view.Process) view.State {
	if here := j.local[p]; here != nil {
		switch {
		case here.exit == nil && j.waits() && time.Since(j.missed) > standInAfter:
			return view.Failed
		case here.exit == nil:
			return view.Live
		case here.endedWell():
			return view.Finished
		}
		return view.Failed
	}
	return j.elsewhere(j.members.peerOf[p])
}

// elsewhere returns what the processes of another peer have become. That one is silent here may
// be for a link that is cut: then others have its tables, and the detector asks it through them.
func (j *job) elsewhere(peer p2ppeer.ID) view.State {
	silence, ok := j.views.Silence(peer)
	failed, watched := j.failed[peer]
	switch {
	case !ok: // it is the submitter's own, which is gone
		return view.Failed
	case watched && !failed:
		return view.Live
	case j.views.Leads() && silence <= silentFor+j.hang:
		return view.Live
	case !watched && !j.views.Leads() && j.reaches(peer):
		return view.Live
	}
	return view.Failed
}

// reaches reports whether this peer is connected with another one.
func (j *job) reaches(peer p2ppeer.ID) bool {
	return j.service.host.Network().Connectedness(peer) == network.Connected
}

// listensTo reports whether a submitter that is here, as a new process, is to have the last
// words of p first: one that has failed says nothing any more. Then it asks itself.
func (j *job) listensTo(p view.Process) bool {
	here := j.local[p]
	return j.orphaned && j.attached != nil && here != nil && here.speaks && !here.drained()
}

// letNoneJoin ends the processes that wait to join while no submitter is connected. If the submitter had
// already let one of them join, it replaces that process once the view names it.
func (j *job) letNoneJoin() {
	if j.attached != nil {
		return
	}
	for _, p := range j.local {
		if p.waits() {
			p.end("its submitter is gone, so it cannot join the job")
		}
	}
}

// windDown gives the slots back when nothing runs here any more, and ends the job when
// nothing of it will be asked for, and nobody waits for this peer's vote. Of a job that has
// lost a rank, the submitter is to hear how.
func (j *job) windDown() {
	needed := false
	for rank := range j.view.N {
		if _, ok := j.view.Speaker(rank); !ok {
			needed = true
			j.endAll(fmt.Sprintf("rank %d has lost all its replicas", rank))
			break
		}
	}
	for _, p := range j.local {
		needed = needed || !p.expelled && !p.waits()
	}
	switch {
	case !needed && !j.voting():
		j.end(errors.New("all its processes have failed"))
	default:
		j.keepOnly()
	}
}

// voting reports whether the others may not be a majority without this peer.
func (j *job) voting() bool {
	return j.views.Votes(j.service.host.ID()) && j.views.Contact() != viewgroup.CutOff
}

// endAll ends what runs here.
func (j *job) endAll(reason string) {
	for _, p := range j.local {
		p.end(reason)
	}
}

package launch

import (
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup"
)

// A job whose submitter is silent continues if it has a view group. Its peers then propose the changes that
// the submitter would propose:
//
//	a process here has ended, or        each peer proposes its own
//	  is in use again after it was set
//	  aside
//	a peer does not answer              each peer whose fault detector reports that peer silent; the leader of
//	                                      the group only if it gets no answer itself. A majority of the
//	                                      peer's jurors must confirm it (package viewgroup)
//	a process joined later, and its     every peer: it runs on the submitter's own peer
//	  peer is not known
//
// The peers continue to do so when the submitter comes back as a new process, which has no log of the
// views. They tell that process which changes are committed. It proposes changes through them, and
// introduces the replacements that it has found for lost processes.
//
// The output of the processes waits for the submitter, as far as there is room, and so do the files of
// processes that have ended. Slots are released early, unless the kept data is large (kept.go).

// silentFor is how long a peer may leave the leader of the view group without an answer before its
// processes fail, in addition to the tolerated hang. A peer that joined later is in no other group, so
// no member asks it through others.
const silentFor = 4 * time.Second

var errSubmitterFailed = errors.New("the submitter's peer has failed")

// submitterSilent records that the submitter is silent.
func (j *job) submitterSilent() {
	if j.presence.lose(time.Now()) {
		j.log.Info().Msg("the submitter is unreachable; the job continues without it")
	}
	j.take(j.views.ahead) // the submitter no longer sends the missing row
}

// becomeOrphaned makes the peers responsible for the views, since the submitter is a new process. It sends
// that process all committed changes.
func (j *job) becomeOrphaned() {
	j.submitterSilent()
	j.presence.orphan(time.Now())
	j.views.group.Gone(j.submitter) // the process that had the log
	for _, c := range j.views.changes {
		j.send(agreed(c))
	}
	if j.views.group.Contact() == viewgroup.CutOff {
		j.send(outside(""))
	}
}

// actForSubmitter makes the decisions of a silent submitter that cannot wait for it.
func (j *job) actForSubmitter() {
	now := time.Now()
	if !j.presence.silent() {
		return
	}
	if j.presence.state == orphaned && j.control.stream != nil && !j.waitsToJoin() {
		j.presence.since = now // it is connected, and makes no views
	}
	short := j.waitsToJoin() || j.init == awaitsBegin && !j.presence.mayReturn // only the submitter can begin it
	if j.presence.expired(short, now) {
		j.end(errSubmitterFailed)
		return
	}
	if !j.presence.acts(now) {
		return
	}
	for _, p := range j.views.current.Processes() {
		if to := j.stateHere(p); j.views.current.Live(p) && to != view.Live && !(to == view.Failed && j.awaitsOutput(p)) {
			j.views.group.Propose(view.Change{Process: p, To: to})
		}
	}
	j.endJoining()
	for _, p := range j.here.local {
		if p.reports.upToDate.Since != 0 {
			j.views.group.Propose(view.Change{Process: p.id, To: view.Live, Since: p.reports.upToDate.Term, At: p.reports.upToDate.Since})
		}
	}
	j.releaseIfEnded()
}

// waitsToJoin reports whether the process here is to join the job and still waits in mpj.Init. If it
// waits for long, it has not joined, or other processes wait for it.
func (j *job) waitsToJoin() bool { return j.joining && j.init == awaitsBegin }

// stateHere returns the state of a live process of the view according to this peer.
func (j *job) stateHere(p view.Process) view.State {
	if here := j.here.local[p]; here != nil {
		switch {
		case here.exit == nil && j.waitsToJoin() && time.Since(j.presence.since) > actAfter:
			return view.Failed
		case here.exit == nil:
			return view.Live
		case here.endedWell():
			return view.Finished
		}
		return view.Failed
	}
	return j.stateElsewhere(j.members.PeerOf[p])
}

// stateElsewhere returns the state of the processes of another peer. Silence may be due to a broken link to
// this peer only. That peer's gossip then still reaches others, and the detector asks it through them.
func (j *job) stateElsewhere(peer p2ppeer.ID) view.State {
	silence, ok := j.views.group.Silence(peer)
	failed, watched := j.detection.failed[peer]
	switch {
	case !ok: // the submitter's own peer, which has failed
		return view.Failed
	case watched && !failed:
		return view.Live
	case j.views.group.Leads() && silence <= silentFor+j.detection.hang:
		return view.Live
	case !watched && !j.views.group.Leads() && j.reaches(peer):
		return view.Live
	}
	return view.Failed
}

// reaches reports whether this peer is connected to the given peer.
func (j *job) reaches(peer p2ppeer.ID) bool {
	return j.service.host.Network().Connectedness(peer) == network.Connected
}

// awaitsOutput reports whether p's output must reach the submitter before p fails in the view, since a failed
// process sends no more output. This applies if the submitter is connected as a new process. It then
// proposes the change itself.
func (j *job) awaitsOutput(p view.Process) bool {
	here := j.here.local[p]
	return j.presence.state == orphaned && j.control.stream != nil && here != nil && here.leads && !here.drained()
}

// endJoining ends the processes that wait to join while no submitter is connected. If the submitter had
// already let one of them join, it replaces that process once the view names it.
func (j *job) endJoining() {
	if j.control.stream == nil {
		j.here.endWaiting("its submitter is not connected, so it cannot join the job")
	}
}

// releaseIfEnded releases the slots when nothing runs here any more. It ends the job when nothing of it
// will be requested, and no other peer needs this peer's vote. If the job has lost a rank, it stays, so
// that the submitter can learn the reason.
func (j *job) releaseIfEnded() {
	needed := false
	for rank := range j.views.current.N {
		if _, ok := j.views.current.Speaker(rank); !ok {
			needed = true
			j.here.endAll(fmt.Sprintf("rank %d has lost all its replicas", rank))
			break
		}
	}
	for _, p := range j.here.local {
		needed = needed || !p.failedInView && !p.waitsToJoin()
	}
	switch {
	case !needed && !j.views.voting(j.service.host.ID()):
		j.end(errors.New("all its processes have failed"))
	default:
		j.releaseSlots()
	}
}

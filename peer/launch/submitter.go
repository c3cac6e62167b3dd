package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/scratch"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/reservation"
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
// A submitter that comes back is a member of the view group that is behind. It reconnects to each peer, and
// may be a new process. The peers continue to propose changes until it has formed the next generation of the
// fault detector's group, since it has yet to receive the causes of earlier changes.
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

// actForSubmitter makes the decisions of a silent submitter that cannot wait for it.
func (j *job) actForSubmitter() {
	now := time.Now()
	if !j.presence.silent() {
		return
	}
	short := j.waitsToJoin() || j.settings.init == awaitsBegin && !j.presence.mayReturn // only the submitter can begin it
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

// waitsToJoin reports whether the process here is to join the job and still waits in mpj.Init. A long wait means
// that the process has not joined, or that other processes do not know that it has.
func (j *job) waitsToJoin() bool { return j.admission.joining && j.settings.init == awaitsBegin }

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
	return j.stateElsewhere(j.board.Table().PeerOf[p])
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
// process sends no more output. This applies if the submitter has reconnected. It then proposes the change
// itself.
func (j *job) awaitsOutput(p view.Process) bool {
	here := j.here.local[p]
	return j.control.stream != nil && j.presence.heard() && here != nil && here.leads && !here.drained()
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
		if _, ok := j.views.current.OutputLeader(rank); !ok {
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

// attach makes stream the stream by which the job and its submitter communicate.
func (j *job) attach(stream network.Stream, in pbio.Reader) {
	a := &controlStream{stream, make(chan *jobpb.FromPeer), j.confinement.upload.wait, make(chan struct{})}
	j.control.stream, j.presence.lastMessageAt = a, time.Now()
	j.running.Go(func() { j.read(a, in) })  // ends with the stream
	j.running.Go(func() { a.write(j.ctx) }) // ends with out
}

// read turns the submitter's messages into events until the stream ends.
func (j *job) read(a *controlStream, in pbio.Reader) {
	current := func(event func()) bool {
		return j.do(func() {
			if a == j.control.stream { // otherwise the submitter has opened another stream
				event()
			}
		})
	}
	for {
		m := &jobpb.ToPeer{}
		if err := in.ReadMsg(m); err != nil {
			if errors.Is(err, io.EOF) && !errors.Is(err, network.ErrReset) { // the stream has ended, its connection has not
				err = errClosed
			}
			current(func() { j.streamBroke(fmt.Errorf("control stream: %w", err)) })
			return
		}
		if !current(func() { j.handle(m) }) {
			return
		}
	}
}

// streamBroke handles the end of the control stream. The job ends here if the submitter has ended the
// stream with the code Left. If the submitter had been silent before, the link has broken, and the
// submitter may reconnect. It may also reconnect if neither side ended the stream, unless its machine
// reports that it no longer runs, or the detector finds it silent. Even then, a submitter that keeps a home
// may come back as a new process. In all other cases the submitter has ended, or has given this peer up.
// Between staging and Begin, which is short, the job does not wait for a submitter that is lost.
func (j *job) streamBroke(reason error) {
	last := j.control.stream.Conn().RemoteMultiaddr()
	ended, ok := errors.AsType[*network.StreamError](reason)
	byOther := ok && ended.Remote && ended.ErrorCode != jobpb.Unwritten || errors.Is(reason, errClosed)
	silent := j.presence.silent() && j.settings.init != awaitsBegin
	switch {
	case ok && ended.Remote && ended.ErrorCode == jobpb.Left:
		j.end(reason)
	case silent || byOther || j.settings.init == awaitsBegin && !j.preparing() || j.submitter == j.service.host.ID():
		j.loseSubmitter(reason)
	default:
		if say, _ := j.service.reconnectPace.Due(j.submitter); say {
			j.log.Info().Err(reason).Msg("the control stream broke; the submitter may reconnect")
		}
		j.control.detach()
		j.presence.enter(disconnected, time.Now())
		var ctx context.Context
		ctx, j.presence.stopProbe = context.WithCancel(j.ctx)
		j.running.Go(func() { j.probeSubmitter(ctx, last, reason) }) // ends when the submitter is back, or with the job
	}
}

// preparing reports whether the job has not started yet. The submitter can then repeat all earlier
// messages.
func (j *job) preparing() bool {
	return !j.admission.joining && (j.state == Staging || j.state == Staged)
}

// loseSubmitter handles the loss of a submitter. The job continues only if the submitter was silent before,
// or if it may come back as a new process.
func (j *job) loseSubmitter(reason error) {
	silent := j.presence.silent() && j.settings.init != awaitsBegin
	if !silent && (j.views.group == nil || !j.presence.mayReturn) {
		j.end(reason)
		return
	}
	j.submitterSilent()
	j.control.detach()
}

// probeSubmitter asks the submitter's machine whether the submitter still runs, until it is back.
func (j *job) probeSubmitter(ctx context.Context, last ma.Multiaddr, reason error) {
	if j.presence.endpoints.AwaitRefused(ctx, last, j.service.host.Peerstore().Addrs(j.submitter)) {
		j.do(func() {
			if ctx.Err() == nil { // otherwise the submitter is back
				j.loseSubmitter(reason)
			}
		})
	}
}

// probeAddresses finds out at which addresses the submitter accepts connections while it runs.
func (j *job) probeAddresses() {
	if j.submitter != j.service.host.ID() {
		j.running.Go(func() { j.presence.endpoints.Probe(j.ctx, j.service.host, j.submitter) }) // ends within 3 s
	}
}

// loseDisconnected gives up a submitter that has been disconnected for longer than the job tolerates, if
// nothing else has reported its failure.
func (j *job) loseDisconnected() {
	if j.presence.reconnectOverdue(j.detection.hang, time.Now()) {
		j.loseSubmitter(errSubmitterFailed)
	}
}

// askOver asks a submitter that was out of reach, and is connected again, whether it has ended the job or
// continues without this peer. What it announced in between has not arrived here. A submitter that is a new
// process, or has yet to reattach to the job, cannot answer that, so askOver asks at increasing intervals.
func (j *job) askOver() {
	if !j.presence.asks(time.Now()) || !j.reaches(j.submitter) {
		return
	}
	j.presence.askedNow(time.Now())
	j.running.Go(func() { // ends with ctx, or within 5 s
		if over, _ := jobpb.AskOver(j.ctx, j.service.host, j.submitter, j.spec.ID); over {
			j.do(func() { j.end(errOver) })
		}
	})
}

// resume makes stream the submitter's stream. m tells how many messages the submitter has received.
func (j *job) resume(stream network.Stream, in pbio.Reader, m *jobpb.Resume) error {
	switch {
	case j.ended != nil || j.settings.init == awaitsBegin && !j.preparing() && !m.NewProcess:
		return errors.New("the job is not running")
	case j.presence.replaced && !m.NewProcess: // an old process would propose changes from outdated knowledge
		return errReplaced
	case m.Heard > uint64(len(j.control.messages)):
		return fmt.Errorf("%d messages received of %d", m.Heard, len(j.control.messages))
	case m.NewProcess && j.views.group == nil:
		return errors.New("the job has no view group to continue it after its submitter")
	}
	if m.NewProcess && j.control.stream != nil {
		j.control.stream.ResetWithError(jobpb.Replaced)
	}
	j.presence.replaced = j.presence.replaced || m.NewProcess
	j.presence.reconnected(j.detection.failed[j.submitter], time.Now())
	j.control.detach()
	j.attach(stream, in)
	j.probeAddresses()
	j.control.resume(int(m.Heard))
	j.here.rewind()
	if say, _ := j.service.reconnectPace.Due(j.submitter); say {
		j.log.Info().Uint64("received", m.Heard).Bool("new_process", m.NewProcess).Int("sent", len(j.control.messages)).Msg("the submitter has reconnected")
	}
	return nil
}

// linger releases the slots of a job whose processes here have all ended, although its submitter is
// connected. If much data is kept, the job keeps its slots. linger ends the job once its processes would
// have reached their time limit, or after maxLinger.
func (j *job) linger() {
	switch {
	case !j.keeping.lingered(j.here.allEnded(), time.Now()):
	case time.Since(j.since) > cmp.Or(limits.Min(j.grant.Slot, j.grant.Job).Time, maxLinger)+lingerFor:
		j.end(errors.New("its output was not collected in time"))
	default:
		j.releaseSlots()
	}
}

// releaseSlots tries to release the job's slots once all its processes here have ended, and keeps only their
// output.
func (j *job) releaseSlots() {
	if !j.here.allEnded() || !j.keeping.measures(time.Now()) {
		return
	}
	first := !j.keeping.outputOnly
	j.keeping.outputOnly, j.keeping.measureAt = true, time.Time{}
	order, slots := j.here.order, append(j.here.slots(), j.admission.key)
	j.working.Go(func() { j.tryReleaseSlots(order, slots, first) }) // ends when the files are measured
}

// tryReleaseSlots releases the slots if the job keeps little data here. Otherwise the job keeps its slots for
// now.
func (j *job) tryReleaseSlots(order []view.Process, slots []reservation.Key, first bool) {
	bytes := j.stager.program.Size
	ruler := scratch.Ruler{Least: scratch.LeastEntry(string(j.folder)), Most: maxKept}
	var errs []error
	for _, p := range order {
		n, err := scratch.Measure(j.folder.Process(p), ruler)
		bytes, errs = bytes+n, append(errs, err)
	}
	err := errors.Join(errs...)
	if err == nil && j.service.keep(j, bytes) {
		for _, key := range slots {
			j.service.config.Reservations.Release(key)
		}
		j.log.Info().Msg("its processes have ended; their output waits for the submitter")
		return
	}
	if first {
		j.log.Info().AnErr("reason", err).Int64("bytes", bytes).Msg("its processes have ended; it keeps its slots, since much output waits for the submitter")
	}
	j.do(func() { j.keeping.measureAt = time.Now().Add(measureKeptEvery) })
}

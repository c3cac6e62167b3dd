package submit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// stop ends the job on every peer and waits until each peer has confirmed that nothing of it is
// left.
func (e *execution) stop(reason string) {
	e.j.phase(Releasing, 0, 0)
	e.recruitment.endSearch()
	away := 0
	for _, l := range e.peers.links {
		if !l.retired {
			l.send(stopMessage(reason))
		}
		if l.err == nil && l.disconnected {
			away++
		}
	}
	var tried <-chan time.Time
	if away > 0 {
		e.j.warn(fmt.Sprintf("%s disconnected; trying for %v to report that the job is over", plural(uint64(away), "peer"), e.j.s.waits.notify))
		tried = time.After(e.j.s.waits.notify)
	}
	timeout := time.NewTimer(e.j.s.waits.stop)
	defer timeout.Stop()
	for e.peers.unstopped() > 0 {
		select {
		case h := <-e.peers.inbox.messages:
			if h.back {
				e.tellStop(h, reason)
			} else if h.wire != h.link.wire {
				continue // from a stream that has been replaced
			} else if h.err != nil {
				h.link.lose(h.err)
			} else if _, ok := h.msg.Body.(*jobpb.FromPeer_Stopped); ok {
				h.link.stopped = true
			}
		case <-e.detection.failed:
			for _, l := range e.peers.links {
				if l.silent.Load() {
					l.lose(errSilent)
				}
			}
		case <-e.pulseTicks:
			e.giveUpSilent()
		case <-tried:
			e.loseUntold()
		case <-timeout.C:
			e.j.log.Warn().Int("peers", e.peers.unstopped()).Msg("no confirmation from peers that were told to stop; they end the job when they notice that its stream has ended")
			return
		}
	}
}

// loseUntold gives up the peers that could not be told that the job is over.
func (e *execution) loseUntold() {
	left := 0
	for _, l := range e.peers.links {
		if l.err == nil && l.disconnected {
			l.lose(errSilent)
			left++
		}
	}
	if e.begin == nil { // they wait at most missFor (package launch)
		e.j.warn(fmt.Sprintf("%s could not be told that the job is over, and will end by themselves within half a minute", plural(uint64(left), "peer")))
		return
	}
	if e.views.group == nil { // their fault detectors notice the end
		e.j.warn(fmt.Sprintf("%s could not be told that the job is over, and will end within %v", plural(uint64(left), "peer"), e.j.hang()))
		return
	}
	e.j.keeper.leave(left)
	e.j.warn(fmt.Sprintf("%s could not be told that the job is over, and will end by themselves within %v of their disconnection (--away)", plural(uint64(left), "peer"), e.j.req.Away))
}

// isReplaced reports whether a stream has ended because another process has resumed the job, from a
// copy of its directory, while this process was cut off or frozen.
func isReplaced(err error) bool {
	reset, ok := errors.AsType[*network.StreamError](err)
	return ok && reset.Remote && reset.ErrorCode == jobpb.Replaced
}

// yield ends this side of a job that another process has resumed or can resume. It tells no peer to
// stop or to give up waiting, and fails none. A recruit, which has no part in the job yet, is
// released.
func (e *execution) yield(r job.Result) job.Result {
	e.recruitment.endSearch()
	for _, l := range e.peers.links {
		if l.err == nil && !l.disconnected && l.recruit == nil {
			l.end()
			l.disconnected = true
		}
	}
	e.j.keeper.leave(len(e.peers.links))
	e.close()
	return r
}

func (e *execution) takenOver() job.Result {
	return job.Result{
		Status:  job.StatusLost,
		Message: fmt.Sprintf("another p2prun has resumed job %s", e.j.spec.ID),
		Hint:    "the output continues there; if that process ends before the job, p2prun --attach resumes the job",
	}
}

func stopMessage(reason string) *jobpb.ToPeer {
	return &jobpb.ToPeer{Body: &jobpb.ToPeer_Stop{Stop: &jobpb.Stop{Reason: reason}}}
}

// close releases everything of the execution on this side, and returns the slots that no peer has
// redeemed.
func (e *execution) close() {
	close(e.peers.inbox.done)
	e.detection.close()
	e.views.close()
	for _, stop := range e.peers.stopServing {
		stop()
	}
	for _, l := range e.peers.links {
		e.recruitment.abandonAdditions(l)
	}
	unused := slices.Collect(maps.Values(e.recruitment.unused))
	for _, l := range e.peers.links {
		l.close()
		l.leaveGroup()
		e.j.s.cfg.Host.ConnManager().Unprotect(l.peer, e.peers.tag())
		if !l.redeemed {
			unused = append(unused, l.slots)
		}
	}
	// The job's own context may have ended. Slots of unreachable peers expire.
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	e.reserved.Placements = unused
	e.reserved.Release(ctx, e.j.s.holder)
}

const releaseTimeout = 5 * time.Second

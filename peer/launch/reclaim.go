package launch

import (
	"errors"
	"time"
)

// A reclaim decides how a job complies with the owner, who takes back the machine or a part of it. It reads no
// clock.
type reclaim struct {
	leaving    bool      // the job migrates to other peers, see HandOver
	emptySince time.Time // time since which the view contains none of its processes here, while it leaves
	stopBy     time.Time // deadline that the owner has set for its end, see Stop; zero: none
	cut        error     // why the owner's decision ended its processes, or nil
	pausedAt   time.Time // time since which the owner needs the machine, see Pause; zero: not needed; written under service.mu
	reported   bool      // the submitter has been told that the processes are suspended
}

// dismissTimeout is how long a submitter may take to end the job's part at a peer, once none of that peer's
// processes is in the view. The job stays longer if the view group may lack a majority without this peer.
const dismissTimeout = 5 * time.Second

// bars returns the reason why no process may be added to the job here, or nil.
func (r *reclaim) bars() error {
	switch {
	case r.cut != nil || r.leaving || !r.stopBy.IsZero():
		return errReclaimed
	case !r.pausedAt.IsZero():
		return errors.New("its owner needs the machine")
	}
	return nil
}

// stopBefore sets the deadline for the end of the job, unless there is one.
func (r *reclaim) stopBefore(deadline time.Time) {
	if r.stopBy.IsZero() {
		r.stopBy = deadline
	}
}

// deadline tells whether the processes must be ended now, and whether the submitter has had enough time to end
// the job after that.
func (r *reclaim) deadline(now time.Time) (cut, end bool) {
	late := now.Sub(r.stopBy)
	if r.stopBy.IsZero() || late < 0 {
		return false, false
	}
	return r.cut == nil, r.cut != nil && late > dismissTimeout
}

// left reports whether the job has left this peer. needed tells whether the view contains a process here.
func (r *reclaim) left(needed bool, now time.Time) bool {
	if !needed && r.emptySince.IsZero() {
		r.emptySince = now
	}
	return !needed && now.Sub(r.emptySince) > dismissTimeout
}

// departure returns how the job left, once nothing of it remains.
func (r *reclaim) departure() Departure {
	switch {
	case r.cut != nil:
		return CutShort
	case r.leaving:
		return HandedOver
	}
	return Over
}

// endsPaused reports whether a job in the given state ends now, because the owner needs the machine. Its
// processes may be suspended for most. runs tells whether one of them runs.
func (r *reclaim) endsPaused(s State, most time.Duration, runs bool, now time.Time) bool {
	switch s {
	case Staging, Staged:
		return true
	case Starting:
		return now.Sub(r.pausedAt) >= most
	case Running:
		return now.Sub(r.pausedAt) >= most && runs // otherwise nothing of the job runs here
	}
	return false
}

// suspends reports whether the processes must be suspended now. A job that cannot migrate is suspended from the
// beginning. replaced tells whether a replacement of a process here has joined, which that process may have to
// bring up to date.
func (r *reclaim) suspends(migrates, replaced bool, now time.Time) bool {
	switch {
	case !canSuspend || r.pausedAt.IsZero():
		return false
	case !migrates:
		return true
	}
	since := now.Sub(r.pausedAt)
	return since >= migrateTimeout && (since >= updateTimeout || !replaced)
}

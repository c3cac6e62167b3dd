package launch

import (
	"cmp"
	"errors"
	"time"
)

// How a job ends here while it continues elsewhere. Its processes end at once, but this peer may be a voter of the
// view group, and the submitter's peer may be lost at the same time. So this peer remains a member of the group as
// long as the others need it (viewsState.stays), for a limited time.
//
//	cutShort --> processes killed, Exited(why) -- 5 s --> files removed, slots released -- 40 s --> end
//	                  |                                           |                                  ^
//	                  |                                           '-- not needed as a member --------|
//	                  '-- Stop by the submitter -----------------------------------------------------'
//
// Meanwhile no process can be added, and this peer gives up the leadership of the group (viewgroup.Group.Leave).

// endAtDeadline ends a job that is here longer than its owner wants, after the submitter has had time to
// end it.
func (j *job) endAtDeadline() {
	if j.views.group != nil && (j.reclaim.leaving || j.reclaim.cut != nil) {
		j.views.group.Leave()
	}
	switch cut, release, end := j.reclaim.deadline(j.stays(), time.Now()); {
	case cut:
		j.cutShort(errStopped)
	case release:
		j.keepVoteOnly()
	case end:
		j.end(j.reclaim.cut)
	}
}

// stays returns how long this peer stays a member of the view group after the job could end here.
func (j *job) stays() time.Duration {
	if j.views.group == nil {
		return 0
	}
	return j.views.stays(j.service.host.ID(), j.here.order)
}

// leave ends the job here for a reason of this peer. If it is needed as a member of the view group, that takes as long
// as if the owner had ended the job.
func (j *job) leave(why error) {
	if j.stays() > 0 {
		j.cutShort(why)
		return
	}
	j.end(why)
}

// endLeft ends a job that has left this peer. If the owner has ended it, the owner's reason counts.
func (j *job) endLeft(why string) { j.end(cmp.Or(j.reclaim.cut, errors.New(why))) }

// keepVoteOnly removes the files of a job that was cut short, and releases its slots. Only its membership in the view
// group remains, and what is in memory for the submitter. A process that is still being killed delays that.
func (j *job) keepVoteOnly() {
	if j.reclaim.releasing || !j.here.allEnded() {
		return
	}
	j.reclaim.releasing = true
	j.keeping.outputOnly, j.keeping.measureAt = true, time.Time{}
	j.unguard()
	j.stager.close()
	var processes []*process
	for _, p := range j.here.local {
		p.kill() // what is left of it
		processes = append(processes, p)
	}
	slots := append(j.here.slots(), j.admission.key)
	j.working.Go(func() { // ends when the files are removed
		for _, p := range processes {
			p.live.close()
		}
		if err := j.folder.Remove(); err != nil {
			j.log.Error().Err(err).Msg("scratch folder not removed")
		}
		for _, key := range slots {
			j.service.config.Reservations.Release(key)
		}
		j.log.Info().AnErr("reason", j.reclaim.cut).Msg("files removed and slots released; the job's other peers may still need this peer's vote")
		j.service.setVoteOnly(j)
	})
}

// setVoteOnly records that nothing of a job is left but its membership in the view group.
func (s *Service) setVoteOnly(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.reclaim.voteOnly = true
	delete(s.kept, j)
	s.notifyGone()
}

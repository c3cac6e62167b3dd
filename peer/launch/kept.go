package launch

import (
	"cmp"
	"errors"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/scratch"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// What is kept for submitters takes room that others are granted, once a job has given
// its slots back. So only little is kept beside the slots.
const (
	maxKept          = 256 << 20 // bytes of files, programs among them
	maxKeptProcesses = 32        // of which output is kept, each in memory

	// weighAgain is after what time a job that keeps its slots tries again: others may have gone.
	weighAgain = time.Minute

	// lingerFor is how long a job whose processes here have all ended has its slots while its submitter is there:
	// so long it may take what they have left.
	lingerFor = 10 * time.Minute
	// maxLinger is how old a job may be of which nothing runs here, if its processes have no limit of time.
	maxLinger = 7 * 24 * time.Hour
)

// linger lets others have the slots of a job whose processes here have all ended, although its submitter is there.
// Where much is kept, it has them until its processes would have had to end.
func (j *job) linger() {
	switch {
	case !j.rests():
		j.restsAt = time.Time{}
	case j.restsAt.IsZero():
		j.restsAt = time.Now()
	case time.Since(j.since) > cmp.Or(limits.Min(j.grant.Slot, j.grant.Job).Time, maxLinger)+lingerFor && time.Since(j.restsAt) > lingerFor:
		j.end(errors.New("its processes have ended long since"))
	case time.Since(j.restsAt) > lingerFor:
		j.keepOnly()
	}
}

// rests reports whether all processes here have ended.
func (j *job) rests() bool {
	for _, p := range j.local {
		if p.exit == nil {
			return false
		}
	}
	return true
}

// keepOnly has the job keep no more than what its processes have left, once all have ended.
func (j *job) keepOnly() {
	if !j.rests() || j.onlyKeeps && (j.weighAt.IsZero() || time.Now().Before(j.weighAt)) {
		return
	}
	first := !j.onlyKeeps
	j.onlyKeeps, j.weighAt = true, time.Time{}
	order, slots := j.order, j.slots()
	j.working.Go(func() { j.giveSlotsBack(order, slots, first) }) // ends when their leftovers are measured
}

// giveSlotsBack lets others have the slots, if little of the job is kept here. Else it keeps them for now.
func (j *job) giveSlotsBack(order []view.Process, slots []reservation.Key, first bool) {
	bytes := j.program.Size
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
		j.log.Info().AnErr("reason", err).Int64("bytes", bytes).Msg("its processes have ended, and it keeps its slots: much waits for the submitter")
	}
	j.do(func() { j.weighAt = time.Now().Add(weighAgain) })
}

// keep takes note of what a job keeps, and is false when all jobs together would keep too much.
func (s *Service) keep(j *job, bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, processes := bytes, len(j.order)
	for other, n := range s.kept {
		all, processes = all+n, processes+len(other.order)
	}
	if all > maxKept || processes > maxKeptProcesses {
		return false
	}
	s.kept[j] = bytes
	return true
}

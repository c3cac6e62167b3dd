package launch

import (
	"cmp"
	"errors"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/launch/confine/scratch"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// Bounds of what is kept for submitters after a job has released its slots, since it takes room that is
// granted to other jobs.
const (
	maxKept          = 256 << 20 // bytes of files, programs included
	maxKeptProcesses = 32        // processes whose output is kept in memory

	// measureKeptEvery is the interval at which a job that keeps its slots measures again, since other jobs
	// may have ended.
	measureKeptEvery = time.Minute

	// lingerFor is how long a job keeps its slots after all its processes here have ended, while its
	// submitter is connected. The submitter can collect their output in that time.
	lingerFor = 10 * time.Minute
	// maxLinger bounds the age of a job of which nothing runs here, if its processes have no time limit.
	maxLinger = 7 * 24 * time.Hour
)

// A keeping decides how long a job keeps its slots, and the output of its processes, after all of them have
// ended here. It reads no clock.
type keeping struct {
	outputOnly bool      // all processes have ended; their output waits for the submitter
	measureAt  time.Time // next measurement of what the job keeps; zero: no slots to release, or one is running
	allEndedAt time.Time // time at which the last process here ended; zero while any runs
}

// lingered reports whether all processes here have ended, and the submitter has had time to collect their output.
func (k *keeping) lingered(allEnded bool, now time.Time) bool {
	switch {
	case !allEnded:
		k.allEndedAt = time.Time{}
	case k.allEndedAt.IsZero():
		k.allEndedAt = now
	}
	return allEnded && now.Sub(k.allEndedAt) > lingerFor
}

// measures reports whether the kept data must be measured now. It is called once all processes have ended.
func (k *keeping) measures(now time.Time) bool {
	return !k.outputOnly || !k.measureAt.IsZero() && !now.Before(k.measureAt)
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
		j.log.Info().AnErr("reason", err).Int64("bytes", bytes).Msg("its processes have ended; it keeps its slots, since much output waits for the submitter")
	}
	j.do(func() { j.keeping.measureAt = time.Now().Add(measureKeptEvery) })
}

// keep records the data that a job keeps. It returns false if all jobs together would keep too much.
func (s *Service) keep(j *job, bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, processes := bytes, len(j.here.order)
	for other, n := range s.kept {
		all, processes = all+n, processes+len(other.here.order)
	}
	if all > maxKept || processes > maxKeptProcesses {
		return false
	}
	s.kept[j] = bytes
	return true
}

package launch

import (
	"errors"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/launch/internal/scratch"
)

// What is kept for submitters that are away takes room that others are granted, once a job has given
// its slots back. So only little is kept beside the slots.
const (
	maxKept          = 256 << 20 // bytes of files, programs among them
	maxKeptProcesses = 32        // of which output is kept, each in memory

	// weighAgain is after what time a job that keeps its slots tries again: others may have gone.
	weighAgain = time.Minute
)

// giveSlotsBack lets others have the slots, if little of the job is kept here. Else it keeps them for now.
func (j *job) giveSlotsBack(first bool) {
	bytes := j.program.Size
	ruler := scratch.Ruler{Least: scratch.LeastEntry(string(j.folder)), Most: maxKept}
	var errs []error
	for _, p := range j.order {
		n, err := scratch.Measure(j.folder.Process(p), ruler)
		bytes, errs = bytes+n, append(errs, err)
	}
	err := errors.Join(errs...)
	if err == nil && j.service.keep(j, bytes) {
		j.service.config.Reservations.Release(j.key)
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

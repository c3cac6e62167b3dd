package launch

import "time"

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

package sim

import (
	"cmp"
	"slices"
	"time"
)

// A Scheduler is a central scheduler with one list of all waiting jobs and immediate knowledge of every
// free slot.
type Scheduler byte

// The schedulers. They treat all slots as equal.
const (
	// InOrder starts jobs in the order in which they began to wait.
	InOrder Scheduler = iota
	// Foreseeing knows the running time of each job. It starts later jobs if they do not delay the first waiting
	// job (EASY backfilling).
	Foreseeing
)

// Schedule returns what a central scheduler without a network would achieve with the crowd's jobs. Only
// staging and noticing a killed submitter take time. Only Utilisation, Held and the waiting times in Jobs
// are meaningful.
func (c Crowd) Schedule(by Scheduler) Outcome {
	s := &schedule{Crowd: c, by: by}
	for _, p := range c.peers() {
		if p.Fault == None {
			s.total += c.Slots
		}
	}
	s.free = s.total
	for i := range c.Submitters {
		draw := c.wishes(i)
		s.draws = append(s.draws, draw)
		s.submit(i, 0)
	}
	for len(s.events) > 0 {
		e := s.events[0]
		s.events = s.events[1:]
		if e.at >= c.For {
			break
		}
		s.now = e.at
		e.do()
		s.start()
	}
	return s.outcome()
}

// A schedule is a running scheduler. Times are relative to its start.
type schedule struct {
	Crowd
	by          Scheduler
	now         time.Duration
	events      []event // ordered by time
	draws       []func() wish
	waiting     []*entry // in order of arrival
	started     []*entry // jobs that have not ended
	total, free int
	ran, held   time.Duration // summed over all slots
	jobs        []JobRecord
}

type event struct {
	at time.Duration
	do func()
}

// An entry is a job in the list.
type entry struct {
	wish
	JobRecord
	since, ends time.Duration
}

func (s *schedule) at(at time.Duration, do func()) {
	i, _ := slices.BinarySearchFunc(s.events, at, func(e event, at time.Duration) int {
		return cmp.Or(cmp.Compare(e.at, at), -1) // after those of the same time
	})
	s.events = slices.Insert(s.events, i, event{at, do})
}

// submit schedules the next job of submitter i.
func (s *schedule) submit(i int, at time.Duration) {
	s.at(at, func() {
		w := s.draws[i]()
		e := &entry{wish: w, JobRecord: JobRecord{Submitter: i, Slots: w.ranks * s.Replicas}, since: s.now}
		s.waiting = append(s.waiting, e)
		if w.killed > 0 {
			s.at(s.now+w.killed, func() { s.kill(e) })
		}
	})
}

// kill ends the wait of a job whose submitter is killed. For a job that has its slots, start has
// scheduled the end.
func (s *schedule) kill(e *entry) {
	if i := slices.Index(s.waiting, e); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.note(e)
		s.submit(e.Submitter, s.now)
	}
}

// start starts all jobs that may start now.
func (s *schedule) start() {
	for i := s.next(); i >= 0; i = s.next() {
		e := s.waiting[i]
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.started = append(s.started, e)
		s.free -= e.Slots
		ends, comes := s.now+e.staging+e.run, s.now+e.staging+e.run
		if died := e.since + e.killed; e.killed > 0 && died < ends {
			ends, comes = died+noticing, died
		} else {
			e.Ran = true
		}
		e.ends = ends
		s.count(e)
		s.note(e)
		s.submit(e.Submitter, comes)
		s.at(ends, func() {
			s.free += e.Slots
			s.started = slices.DeleteFunc(s.started, func(o *entry) bool { return o == e })
		})
	}
}

// next returns the index of the waiting job that starts now, or -1.
func (s *schedule) next() int {
	if len(s.waiting) == 0 {
		return -1
	}
	front := s.waiting[0]
	if front.Slots <= s.free {
		return 0
	}
	if s.by == InOrder {
		return -1
	}
	starts, spare := s.promise(front)
	return slices.IndexFunc(s.waiting, func(e *entry) bool {
		return e.Slots <= s.free && (e.Slots <= spare || s.now+e.staging+e.run <= starts)
	})
}

// promise returns the latest time at which a job can start, and how many slots are then left over.
func (s *schedule) promise(front *entry) (at time.Duration, spare int) {
	free := s.free
	for _, e := range slices.SortedFunc(slices.Values(s.started), func(a, b *entry) int { return cmp.Compare(a.ends, b.ends) }) {
		if free += e.Slots; free >= front.Slots {
			return e.ends, free - front.Slots
		}
	}
	return s.now, 0
}

// count adds the use that an entry makes of its slots.
func (s *schedule) count(e *entry) {
	within := func(from, to time.Duration) time.Duration {
		return time.Duration(e.Slots) * max(0, min(to, s.For)-max(from, s.Warmup))
	}
	runs := min(s.now+e.staging, e.ends)
	s.held += within(s.now, runs)
	s.ran += within(runs, e.ends)
}

func (s *schedule) note(e *entry) {
	e.Waited = s.now - e.since
	if s.now >= s.Warmup {
		s.jobs = append(s.jobs, e.JobRecord)
	}
}

func (s *schedule) outcome() Outcome {
	all := float64(s.total) * float64(s.For-s.Warmup)
	return Outcome{Jobs: s.jobs, Utilisation: float64(s.ran) / all, Held: float64(s.held) / all}
}

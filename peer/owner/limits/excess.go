package limits

import (
	"fmt"
	"time"
)

// A Usage is the current resource use of some processes.
type Usage struct {
	Memory    int64
	Disk      int64
	Processes int64
	Files     int64 // number of open files of the process that has the most
	Time      time.Duration

	Killed  bool // the kernel has killed a process for lack of memory
	Full    bool // the job as a whole was at its memory limit at that time
	Refused bool // the kernel has refused a process or thread
}

// An Excess describes a limit that some processes have exceeded, and their use.
type Excess struct {
	Kind  Kind
	Limit int64
	Used  int64
	Job   bool   // a limit of the job, not of a slot
	How   string // the excess in words, if the amount is not known
}

// nouns end the message about an excess.
var nouns = map[Kind]string{Memory: "memory", Disk: "disk", Processes: "processes and threads", Files: "open files", Time: "time"}

// String returns the rest of a sentence that begins with a process.
func (x Excess) String() string {
	of := ""
	if x.Job {
		of = " for all processes of the job on this peer"
	}
	how := "used " + format(x.Kind, x.Used)
	switch {
	case x.How != "":
		how = x.How
	case x.Used <= x.Limit: // the kernel has enforced the limit
		how = "used all of it and requested more"
	}
	return fmt.Sprintf("exceeded the limit of %s %s%s: %s", format(x.Kind, x.Limit), nouns[x.Kind], of, how)
}

// Exceeded returns the first limit that is exceeded. A limit that the kernel enforces is exceeded when the
// kernel has refused more.
func (l Limits) Exceeded(u Usage) (Excess, bool) {
	for _, c := range []struct {
		kind    Kind
		used    int64
		refused bool
	}{
		{Memory, u.Memory, u.Killed},
		{Disk, u.Disk, false},
		{Processes, u.Processes, u.Refused},
		{Files, u.Files, l.Files > 0 && u.Files >= l.Files},
		{Time, int64(u.Time), l.Time > 0 && u.Time >= l.Time},
	} {
		if limit := l.Of(c.kind); limit > 0 && (c.used > limit || c.refused) {
			return Excess{Kind: c.kind, Limit: limit, Used: c.used}, true
		}
	}
	return Excess{}, false
}

// Exceeded returns the first limit that a process of a job exceeds. If the kernel has refused more, this
// may be due to the limit of the job as a whole.
func (g Grant) Exceeded(u Usage) (Excess, bool) {
	near := func(used, limit int64) bool { return limit > 0 && used >= limit-limit/20 }
	switch {
	case u.Killed && g.Job.Memory > 0 && u.Full:
		return Excess{Kind: Memory, Limit: g.Job.Memory, Used: g.Job.Memory, Job: true}, true
	case u.Refused && g.Job.Processes > 0 && !near(u.Processes, g.Slot.Processes):
		return Excess{Kind: Processes, Limit: g.Job.Processes, Used: g.Job.Processes, Job: true}, true
	}
	// A process that was far below its limit was not the cause: the machine, or a control group that
	// contains the peer, had no more. Such a process counts as lost, like others, and is replaced.
	if u.Memory > 0 && !near(u.Memory, g.Slot.Memory) {
		u.Killed = false
	}
	if u.Processes > 0 && !near(u.Processes, g.Slot.Processes) {
		u.Refused = false
	}
	return g.Slot.Exceeded(u)
}

// Plus returns the combined use of two processes.
func (u Usage) Plus(o Usage) Usage {
	return Usage{
		Memory: u.Memory + o.Memory, Disk: u.Disk + o.Disk, Processes: u.Processes + o.Processes,
		Files: max(u.Files, o.Files), Time: max(u.Time, o.Time),
	}
}

// Parameters of Pause, which assumes that no program writes more than fastest bytes per second.
const (
	fastest = 8 << 30
	soonest = time.Millisecond
	latest  = time.Second
)

// Pause returns the minimum time for writing so many bytes, between soonest and latest.
func Pause(left int64) time.Duration {
	seconds := min(float64(max(0, left))/fastest, latest.Seconds())
	return max(time.Duration(seconds*float64(time.Second)), soonest)
}

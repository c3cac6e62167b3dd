package limits

import (
	"fmt"
	"time"
)

// A Usage is what some processes have at a moment.
type Usage struct {
	Memory    int64
	Disk      int64
	Processes int64
	Files     int64 // of that process that has the most open
	Time      time.Duration

	Killed  bool // the kernel has killed one of them for want of memory
	Full    bool // all of the job had no more then
	Refused bool // the kernel has refused a process or thread
}

// An Excess is a limit that some processes have exceeded, and what they had.
type Excess struct {
	Kind  Kind
	Limit int64
	Used  int64
	Job   bool   // it is of a job, and not of a slot
	How   string // what was too much, if it cannot be said how much was used
}

// nouns end the sentence that tells of an excess.
var nouns = map[Kind]string{Memory: "memory", Disk: "disk", Processes: "processes and threads", Files: "open files", Time: "time"}

// String is the rest of a sentence that begins with a process.
func (x Excess) String() string {
	of := ""
	if x.Job {
		of = " for all processes of the job on this peer"
	}
	how := "used " + Format(x.Kind, x.Used)
	switch {
	case x.How != "":
		how = x.How
	case x.Used <= x.Limit: // it was held
		how = "used all of it, and wanted more"
	}
	return fmt.Sprintf("exceeded the limit of %s %s%s: %s", Format(x.Kind, x.Limit), nouns[x.Kind], of, how)
}

// Exceeded returns the first limit that is exceeded. Where the kernel holds a
// limit it is exceeded when the kernel has refused more.
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

// Exceeded does so for a process of a job. What the kernel has refused may be what the
// job has too much of, all in all.
func (g Grant) Exceeded(u Usage) (Excess, bool) {
	near := func(used, limit int64) bool { return limit > 0 && used >= limit-limit/20 }
	switch {
	case u.Killed && g.Job.Memory > 0 && u.Full:
		return Excess{Kind: Memory, Limit: g.Job.Memory, Used: g.Job.Memory, Job: true}, true
	case u.Refused && g.Job.Processes > 0 && !near(u.Processes, g.Slot.Processes):
		return Excess{Kind: Processes, Limit: g.Job.Processes, Used: g.Job.Processes, Job: true}, true
	}
	// Who never had as much was in the way of others: the machine, or a group that the peer
	// itself is in, had no more. Such a process is lost as others are, and replaced.
	if u.Memory > 0 && !near(u.Memory, g.Slot.Memory) {
		u.Killed = false
	}
	if u.Processes > 0 && !near(u.Processes, g.Slot.Processes) {
		u.Refused = false
	}
	return g.Slot.Exceeded(u)
}

// Plus returns what two processes have together.
func (u Usage) Plus(o Usage) Usage {
	return Usage{
		Memory: u.Memory + o.Memory, Disk: u.Disk + o.Disk, Processes: u.Processes + o.Processes,
		Files: max(u.Files, o.Files), Time: max(u.Time, o.Time),
	}
}

// Of a disk, it is supposed that no program writes more in a second than fastest.
const (
	fastest = 8 << 30
	soonest = time.Millisecond
	latest  = time.Second
)

// Pause returns how long it takes at least to write so many bytes.
func Pause(left int64) time.Duration {
	seconds := min(float64(max(0, left))/fastest, latest.Seconds())
	return max(time.Duration(seconds*float64(time.Second)), soonest)
}

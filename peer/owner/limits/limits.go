package limits

import (
	"fmt"
	"time"
)

// A Kind names a limit in options, messages and protocols.
type Kind string

// The kinds of limits.
const (
	Memory    Kind = "memory"
	CPU       Kind = "cpu"
	Disk      Kind = "disk"
	Processes Kind = "processes"
	Files     Kind = "files"
	Time      Kind = "time"
	Upload    Kind = "upload"
)

// kinds lists all limits, in the order in which they are shown.
var kinds = []Kind{Memory, CPU, Disk, Processes, Files, Time, Upload}

// Limits are upper bounds for some processes. Zero means no limit.
type Limits struct {
	Memory    int64         `json:"memory,omitempty"`    // bytes, including shared memory and files in memory
	CPU       int64         `json:"cpu,omitempty"`       // percent of one processor
	Disk      int64         `json:"disk,omitempty"`      // bytes in their scratch folders
	Processes int64         `json:"processes,omitempty"` // processes and threads
	Files     int64         `json:"files,omitempty"`     // open at a time, by any one process
	Time      time.Duration `json:"time,omitempty"`      // wall-clock time since their start, in nanoseconds
	Upload    int64         `json:"upload,omitempty"`    // bytes per second to other machines
}

// Each returns the limits that are set as text, each with its kind.
func (l Limits) Each() (all []string) {
	for _, k := range kinds {
		if n := l.Of(k); n > 0 {
			all = append(all, fmt.Sprintf("%s %s", k, format(k, n)))
		}
	}
	return all
}

// A Grant holds the limits of a job on one machine.
type Grant struct {
	Slot Limits `json:"slot"` // limits of each process
	Job  Limits `json:"job"`  // limits of all processes together
}

// Min returns the lower of each limit of two grants.
func (g Grant) Min(o Grant) Grant { return Grant{Slot: Min(g.Slot, o.Slot), Job: Min(g.Job, o.Job)} }

// Min returns the lower of each limit, where 0 means no limit.
func Min(a, b Limits) Limits {
	for _, k := range kinds {
		if l, other := a.field(k), b.Of(k); *l == 0 || other != 0 && other < *l {
			*l = other
		}
	}
	return a
}

// Of returns one of the limits: bytes, percent, a number, or nanoseconds.
func (l Limits) Of(k Kind) int64 { return *l.field(k) }

func (l *Limits) field(k Kind) *int64 {
	return map[Kind]*int64{
		Memory: &l.Memory, CPU: &l.CPU, Disk: &l.Disk, Processes: &l.Processes, Files: &l.Files,
		Time: (*int64)(&l.Time), Upload: &l.Upload,
	}[k]
}

// A Machine describes the resources to be limited.
type Machine struct {
	Memory int64 // bytes, or 0 if not known
	Disk   int64 // free bytes where the scratch folders are, or negative if not known
}

// Parameters of the defaults.
const (
	mostDisk         = 16 << 30
	leastDiskDefault = 256 << 20
	defaultProcesses = 512
	defaultFiles     = 4096
	defaultTime      = 7 * 24 * time.Hour

	leastOfStrangers = 256 << 20 // memory
	strangersDisk    = 1 << 30
	strangersTime    = 12 * time.Hour
)

// Default returns the limits on a machine with the given number of slots. The slots share three quarters of
// the memory, at least 16 MiB each, and a quarter of the free disk, 256 MiB to 16 GiB each. Each process
// also gets one processor and a week. For instance, a machine of 1 GiB with one slot gives that slot 768 MiB, and
// keeps the rest for its owner.
func Default(m Machine, slots int) Grant {
	n := int64(max(1, slots))
	g := Grant{Slot: Limits{CPU: 100, Processes: defaultProcesses, Files: defaultFiles, Time: defaultTime}}
	if m.Memory > 0 {
		g.Slot.Memory = max(m.Memory/4*3/n, leastOf[Memory])
	}
	if m.Disk >= 0 {
		g.Slot.Disk = min(max(m.Disk/4/n, leastDiskDefault), mostDisk)
	}
	return g
}

// Strangers returns the limits of each process of unknown submitters, on a machine with the given number of
// slots. The slots share a quarter of the memory, at least 256 MiB each, so that the owner's programs stay
// in memory. Each process also gets 1 GiB of disk and 12 hours.
func Strangers(m Machine, slots int) Limits {
	l := Limits{Disk: strangersDisk, Time: strangersTime}
	if m.Memory > 0 {
		l.Memory = max(m.Memory/4/int64(max(1, slots)), leastOfStrangers)
	}
	return l
}

package cgroup

import "strconv"

// A Controller is a resource controller of the kernel.
type Controller string

// The controllers that this package uses.
const (
	Memory Controller = "memory"
	CPU    Controller = "cpu"
	Pids   Controller = "pids"
)

var controllers = []Controller{Memory, CPU, Pids}

// A Quota holds the limits of a group's processes; 0 means no limit.
type Quota struct {
	Memory    int64 // bytes, without swap
	CPU       int64 // percent of one processor; for jobs only
	Processes int64 // processes and threads
}

// A Priority states how far a job yields to other processes, on processors and disks. Where the kernel
// supports it, an idle group gets only time that no other group wants, whatever its weight. A process of
// another group that wakes up preempts it at once.
type Priority struct {
	Weight int64 // relative to other groups
	Idle   bool
}

// usual is the default weight of groups.
const defaultWeight = 1024

// weight returns the weight for version 2, where the default is 100.
func (p Priority) weight() string { return strconv.FormatInt(max(1, p.Weight*100/defaultWeight), 10) }

// Usage is the resource use of a group's processes.
type Usage struct {
	Memory, MostMemory       int64 // bytes, current and peak; 0: unknown
	Processes, MostProcesses int64 // number, current and peak; 0: unknown
	Short                    int   // times that the group itself ran out of memory; in version 1 at most 1, and for jobs only
	Killed                   int   // processes killed by the kernel for lack of memory, in whatever group
	Refused                  int   // processes and threads that the kernel refused
}

// periodMicros is the period, in microseconds, of a job's processor limit. Half of an unused share may be
// used later, since the threads of a runtime run in bursts.
const periodMicros = 100_000

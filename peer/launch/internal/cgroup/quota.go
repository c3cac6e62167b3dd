package cgroup

import "strconv"

// A Controller is one of the kernel's that are used here.
type Controller string

// The controllers.
const (
	Memory Controller = "memory"
	CPU    Controller = "cpu"
	Pids   Controller = "pids"
)

var controllers = []Controller{Memory, CPU, Pids}

// A Quota is what the processes of a group may have; 0 is no limit.
type Quota struct {
	Memory    int64 // bytes, none of them swapped out
	CPU       int64 // percent of one processor; of jobs only
	Processes int64 // and threads
}

// A Precedence is how far a job lets others go first on the processors and the disks. Where the
// kernel knows how to, an idle one gets what nobody else wants, whatever its weight: who wakes up
// runs at once in its place.
type Precedence struct {
	Weight int64 // beside other groups
	Idle   bool
}

// usual is the weight of groups of which nothing else is said.
const usual = 1024

// weight is that of version 2, where 100 is usual.
func (p Precedence) weight() string { return strconv.FormatInt(max(1, p.Weight*100/usual), 10) }

// Usage is what they have.
type Usage struct {
	Memory, MostMemory       int64 // bytes, now and at most so far; 0: not known
	Processes, MostProcesses int64 // likewise
	Short                    int   // of memory: how often the group itself had no more; in version 1 whether, and of jobs only
	Killed                   int   // by the kernel, for want of memory, of whatever group
	Refused                  int   // processes and threads, by the kernel
}

// Period is the time in which a job gets its share of the processors. Half of a share
// that was not used may be used later on: the threads of a runtime come in bursts.
const periodMicros = 100_000

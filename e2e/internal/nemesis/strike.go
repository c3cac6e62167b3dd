package nemesis

import (
	"fmt"
	"slices"
	"time"
)

// A Kind is a kind of fault.
type Kind string

// Faults of one process of the job.
const (
	KillProcess    Kind = "kill process"
	StopProcess    Kind = "stop process" // and resume it after it has been failed
	PauseProcess   Kind = "pause process"
	KillSupervisor Kind = "kill supervisor"
	StopSupervisor Kind = "stop supervisor"
)

// Faults of the peer of a process, with all processes there.
const (
	KillPeer  Kind = "kill peer"
	StopPeer  Kind = "stop peer" // without its processes, and resume it after it has been failed
	Freeze    Kind = "freeze"    // the peer and its processes, and resume all after they have been failed
	PausePeer Kind = "pause peer"
)

// Faults of the machine of a process, and of the submitter.
const (
	Clock         Kind = "clock stepped" // the clock of the process's peer is set
	FullDisk      Kind = "disk full"     // no byte can be written in the peer's home
	KillSubmitter Kind = "kill p2prun"   // and resume the job, if possible
	KillResident  Kind = "kill resident" // the peer of the submitter's machine, and boot it again
	// The link of the submitter's machine: cut for a tolerable time, and for a time that may end
	// the job.
	BlinkSubmitter  Kind = "unplug the submitter for a moment"
	UnplugSubmitter Kind = "unplug the submitter"
)

// Faults of the network.
const (
	Blink  Kind = "unplug for a moment" // the machine of a process
	Unplug Kind = "unplug"              // the machine of a process, for so long that the process may be failed
	Mute   Kind = "nothing leaves"      // the machine of a process
	Deaf   Kind = "nothing arrives"     // at the machine of a process
	OneWay Kind = "cut one way"         // from the machine of one process to that of another
	Split  Kind = "partition"           // the machines of two processes on one side, all others on the other
	Loss   Kind = "loss"                // everywhere
	Delay  Kind = "delay"
	Late   Kind = "reordering"
)

// A Harm is the worst effect that a strike may have on its target processes.
type Harm int

// The harms.
const (
	None  Harm = iota // a live, reachable process must not be failed (V3)
	Doubt             // the process may or may not be failed
	Death
)

// A trait describes the strikes of a kind.
type trait struct {
	kind        Kind
	weight      int // relative frequency
	harm        Harm
	pair        bool // it has two target processes
	least, most time.Duration
}

// traits are the traits of all kinds. A strike that silences a process or machine without harm
// lasts no longer than the tolerated silence. A harmful strike with an end lasts long enough for
// peers to notice it. For a kind that wakes its target, least and most bound the time from the
// failure to the wake-up.
var traits = []trait{
	{KillProcess, 4, Death, false, 0, 0},
	{StopProcess, 2, Death, false, time.Second, 3 * time.Second},
	{PauseProcess, 2, None, false, 500 * time.Millisecond, 1500 * time.Millisecond},
	{KillSupervisor, 2, Death, false, 0, 0},
	{StopSupervisor, 1, Death, false, time.Second, 3 * time.Second},
	{KillPeer, 4, Death, false, 0, 0},
	{StopPeer, 3, Death, false, time.Second, 3 * time.Second},
	{Freeze, 4, Death, false, time.Second, 3 * time.Second},
	{PausePeer, 2, None, false, 200 * time.Millisecond, time.Second},
	{FullDisk, 4, Doubt, false, time.Second, 6 * time.Second},
	{Clock, 4, None, false, time.Second, 8 * time.Second},
	{KillSubmitter, 2, None, false, 100 * time.Millisecond, 6 * time.Second},
	{KillResident, 2, None, false, 100 * time.Millisecond, 6 * time.Second},
	{BlinkSubmitter, 2, None, false, 100 * time.Millisecond, time.Second},
	{UnplugSubmitter, 2, None, false, 2 * time.Second, 9 * time.Second},
	{Blink, 3, None, false, 100 * time.Millisecond, time.Second},
	{Unplug, 3, Doubt, false, 4 * time.Second, 9 * time.Second},
	{Mute, 2, Doubt, false, 2 * time.Second, 9 * time.Second},
	{Deaf, 2, Doubt, false, 2 * time.Second, 9 * time.Second},
	{OneWay, 4, None, true, 500 * time.Millisecond, 6 * time.Second},
	{Split, 3, Doubt, true, 2 * time.Second, 9 * time.Second},
	{Loss, 3, None, false, time.Second, 6 * time.Second},
	{Delay, 3, None, false, time.Second, 6 * time.Second},
	{Late, 3, None, false, time.Second, 6 * time.Second},
}

// kinds returns all kinds, in the order of reports.
func kinds() []Kind {
	var kinds []Kind
	for _, t := range traits {
		kinds = append(kinds, t.kind)
	}
	return kinds
}

// traitOf returns the trait of a kind.
func traitOf(k Kind) trait {
	for _, t := range traits {
		if t.kind == k {
			return t
		}
	}
	panic("nemesis: no such kind: " + string(k)) // an error in the test
}

// Harm returns the worst effect that strikes of the kind may have on their targets.
func (k Kind) Harm() Harm { return traitOf(k).harm }

// Pair reports whether strikes of the kind have two target processes.
func (k Kind) Pair() bool { return traitOf(k).pair }

// Single reports whether strikes of the kind affect only a process, and not the rest of the
// machine.
func (k Kind) Single() bool {
	return slices.Contains([]Kind{KillProcess, StopProcess, PauseProcess, KillSupervisor, StopSupervisor}, k)
}

// Wakes reports whether the targets of strikes of the kind are stopped and later resumed, some time after
// they have been failed or when the job has ended.
func (k Kind) Wakes() bool {
	return slices.Contains([]Kind{StopProcess, StopSupervisor, StopPeer, Freeze}, k)
}

// A Process is a replica of a rank.
type Process struct{ Rank, Replica int }

// String writes a process as "rank.replica".
func (p Process) String() string { return fmt.Sprintf("%d.%d", p.Rank, p.Replica) }

// A Strike is one fault to inject.
type Strike struct {
	Kind   Kind
	At     time.Duration // time since the job began to run
	For    time.Duration // duration, 0 for no end; for a kind that wakes, from the failure to the wake-up
	Victim Process
	Other  Process // second target of a pair
	// Much is, for strikes at the whole network, the share of frames that is lost or late, 0 to 1.
	Much float64
	// By is the delay of frames or of late frames, or the error of the clock.
	By time.Duration
}

// String describes the strike.
func (s Strike) String() string {
	text := fmt.Sprintf("at %v: %s", s.At, s.Kind)
	switch {
	case s.Kind.Pair():
		text += fmt.Sprintf(" %s and %s", s.Victim, s.Other)
	case slices.Contains([]Kind{KillSubmitter, KillResident, BlinkSubmitter, UnplugSubmitter}, s.Kind):
	case s.Kind == Clock:
		text += fmt.Sprintf(" by %v at %s", s.By, s.Victim)
	case s.Kind == Loss:
		text += fmt.Sprintf(" of %.1f %%", 100*s.Much)
	case s.Kind == Delay:
		text += fmt.Sprintf(" of %v", s.By)
	case s.Kind == Late:
		text += fmt.Sprintf(": %.0f %% arrive %v later", 100*s.Much, s.By)
	default:
		text += " of " + s.Victim.String()
	}
	switch {
	case s.Kind.Wakes():
		text += fmt.Sprintf(", until %v after it was failed", s.For)
	case s.For > 0:
		text += fmt.Sprintf(", for %v", s.For)
	}
	return text
}

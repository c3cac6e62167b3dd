package nemesis

import (
	"fmt"
	"slices"
	"time"
)

// A Kind is what is done.
type Kind string

// To one process of the job.
const (
	KillProcess    Kind = "kill process"
	StopProcess    Kind = "stop process" // and let it go on when it has been failed
	PauseProcess   Kind = "pause process"
	KillSupervisor Kind = "kill supervisor"
	StopSupervisor Kind = "stop supervisor"
)

// To the peer that a process of the job runs on, with all that runs there.
const (
	KillPeer  Kind = "kill peer"
	StopPeer  Kind = "stop peer" // but for what runs there, and wake it when it has been failed
	Freeze    Kind = "freeze"    // the peer and what runs there, and wake all when it has been failed
	PausePeer Kind = "pause peer"
)

// To the machine of a process, and to the submitter.
const (
	Clock         Kind = "clock stepped" // of its peer
	FullDisk      Kind = "disk full"     // no byte can be written in the peer's home
	KillSubmitter Kind = "kill p2prun"   // and go on with the job, if that can be
	KillResident  Kind = "kill resident" // the peer of the submitter's machine, and boot it again
	// The submitter's machine: what must be borne with, and what the job ends of, or not.
	BlinkSubmitter  Kind = "unplug the submitter for a moment"
	UnplugSubmitter Kind = "unplug the submitter"
)

// To the network.
const (
	Blink  Kind = "unplug for a moment" // the machine of a process
	Unplug Kind = "unplug"              // and plug it in when it has been failed
	Mute   Kind = "nothing leaves"      // the machine of a process
	Deaf   Kind = "nothing arrives"     // at the machine of a process
	OneWay Kind = "cut one way"         // from the machine of a process to that of another
	Split  Kind = "partition"           // the machines of two processes on one side, all else on the other
	Loss   Kind = "loss"                // everywhere
	Delay  Kind = "delay"
	Late   Kind = "reordering"
)

// A Harm is the most that a strike may do to the processes that it is aimed at.
type Harm int

// The harms.
const (
	None  Harm = iota // a live process that can be reached is not failed (V3)
	Doubt             // it may be failed or not
	Death
)

// A trait says how strikes of a kind are.
type trait struct {
	kind        Kind
	weight      int // how often, beside the others
	harm        Harm
	pair        bool // it is about two processes
	least, most time.Duration
}

// traits are all kinds. Those that harm nobody last no longer than what must be
// borne with; the others are over only when all have noticed. Of those that wake it
// is how long after that they do.
var traits = []trait{
	{KillProcess, 4, Death, false, 0, 0},
	{StopProcess, 2, Death, false, time.Second, 3 * time.Second},
	{PauseProcess, 2, None, false, 500 * time.Millisecond, 3 * time.Second},
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

// Kinds are all kinds, in the order of reports.
func Kinds() []Kind {
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
	panic("nemesis: no such kind: " + string(k)) // a mistake in the test
}

// Harm is the most that strikes of the kind may do to those that they are aimed at.
func (k Kind) Harm() Harm { return traitOf(k).harm }

// Pair reports whether strikes of the kind are aimed at two processes.
func (k Kind) Pair() bool { return traitOf(k).pair }

// Single reports whether strikes of the kind leave the rest of the machine alone.
func (k Kind) Single() bool {
	return slices.Contains([]Kind{KillProcess, StopProcess, PauseProcess, KillSupervisor, StopSupervisor}, k)
}

// Wakes reports whether those that a strike of the kind stops go on some time after they
// have been failed, or when the job has ended.
func (k Kind) Wakes() bool {
	return slices.Contains([]Kind{StopProcess, StopSupervisor, StopPeer, Freeze}, k)
}

// A Process is a replica of a rank.
type Process struct{ Rank, Replica int }

// String writes a process as "rank.replica".
func (p Process) String() string { return fmt.Sprintf("%d.%d", p.Rank, p.Replica) }

// A Strike is one thing that is done.
type Strike struct {
	Kind   Kind
	At     time.Duration // after the job has begun to run
	For    time.Duration // then it is over; 0 if it is never. Of those that wake: after they were failed
	Victim Process
	Other  Process // of pairs
	// Much is for the strikes at the network as a whole: the part of frames that
	// is lost or late, 0 to 1.
	Much float64
	// By is how long frames take, or those that are late, or how wrong the clock is.
	By time.Duration
}

// String says what is done.
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
		text += fmt.Sprintf(": %.0f %% come %v later", 100*s.Much, s.By)
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

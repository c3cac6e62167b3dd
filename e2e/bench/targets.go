package main

import (
	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/report"
)

// The project's paths and their counterparts.
const (
	ourShm      = "mpj shm"
	ourTCP      = "mpj tcp"
	ourStream   = "mpj stream"
	twiceTCP    = "mpj tcp, r=2"
	twiceStream = "mpj stream, r=2"
	openShm     = "Open MPI shm"
	openTCP     = "Open MPI tcp"
	rawTLS      = "TLS 1.3"
	rawLibp2p   = "libp2p TLS"
	ourRelay    = "mpj relay"
	rawRelay    = "libp2p TLS, relayed"
)

// targets returns the performance targets.
func targets() []report.Target {
	return append([]report.Target{
		faster("shm, 1 B half round trip", ourShm, openShm, 2, 1, 1.3),
		wider("shm, 1 MiB", ourShm, openShm, 1<<20, 0.8),
		wider("shm, 4 MiB", ourShm, openShm, 4<<20, 0.8),
		faster("shm, 1 B, 4 processes", ourShm, openShm, 4, 1, 1.0),
		faster("tcp (encrypted), 1 B", ourTCP, rawTLS, 2, 1, 1.25),
		wider("tcp (encrypted), 1 MiB", ourTCP, rawTLS, 1<<20, 0.9),
		faster("stream, 1 B", ourStream, rawLibp2p, 2, 1, 1.5),
		wider("stream, 1 MiB", ourStream, rawLibp2p, 1<<20, 0.8),
		faster("tcp, r=2 on distinct peers, 1 B", twiceTCP, ourTCP, 2, 1, 1.3),
		wider("tcp, r=2 on distinct peers, 1 MiB", twiceTCP, ourTCP, 1<<20, 0.45),
		faster("stream, r=2 on distinct peers, 1 B", twiceStream, ourStream, 2, 1, 1.3),
		wider("stream, r=2 on distinct peers, 1 MiB", twiceStream, ourStream, 1<<20, 0.45),
		faster("relay, 1 B (as stream)", ourRelay, rawRelay, 2, 1, 1.5),
		wider("relay, 1 MiB (as stream)", ourRelay, rawRelay, 1<<20, 0.8),
	}, collectiveTargets()...)
}

// collectiveTargets returns the targets for the geometric mean of collectives from 8 B to 4 MiB.
func collectiveTargets() []report.Target {
	sizes := []int{8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20}
	var targets []report.Target
	for _, path := range [][2]string{{ourShm, openShm}, {ourTCP, openTCP}} {
		for _, test := range []string{plan.Allreduce, plan.Alltoall, plan.Bcast} {
			targets = append(targets, report.Target{
				Path: path[0] + ", " + test + ", 4 processes, 8 B to 4 MiB", Against: path[1],
				Ours: name(path[0], 4), Theirs: name(path[1], 4), Tests: []string{test}, Sizes: sizes, Limit: 1.3,
			})
		}
	}
	return targets
}

// faster returns a target for the time of a message.
func faster(path, ours, theirs string, processes, bytes int, limit float64) report.Target {
	return report.Target{
		Path: path, Against: theirs, Ours: name(ours, processes), Theirs: name(theirs, processes),
		Tests: []string{plan.Latency}, Sizes: []int{bytes}, Limit: limit,
	}
}

// wider returns a target for the bandwidth of messages that go back and forth.
func wider(path, ours, theirs string, bytes int, limit float64) report.Target {
	t := faster(path, ours, theirs, 2, bytes, limit)
	t.Speed = true
	return t
}

// overlapTargets returns the targets for progress while the program computes.
func overlapTargets() []report.OverlapTarget {
	var targets []report.OverlapTarget
	for _, ours := range []string{ourShm, ourTCP, ourStream} {
		for _, test := range []string{plan.OverlapRecv, plan.OverlapSend} {
			targets = append(targets, report.OverlapTarget{Ours: name(ours, 2), Test: test, Percent: 90})
		}
	}
	return targets
}

// kernelTargets returns the targets for whole programs that communicate much.
func kernelTargets() []report.KernelTarget {
	var targets []report.KernelTarget
	for _, kernel := range []string{"is", "cg", "mg", "ft"} {
		targets = append(targets, report.KernelTarget{Kernel: kernel, Ours: name(ourShm, 2), Theirs: name(openShm, 2), Limit: 1.3})
	}
	return targets
}

// epTarget returns the target for EP as a job, compared with EP as a sequential program.
func epTarget() report.Target {
	return report.Target{
		Path: "EP, 2 processes", Against: sequential, Ours: name(ourShm, 2), Theirs: name(sequential, 2),
		Tests: []string{"ep"}, Sizes: []int{0}, Limit: 1.05,
	}
}

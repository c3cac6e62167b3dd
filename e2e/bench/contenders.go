package main

import (
	"slices"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/report"
)

// A contender is one way to run the items of the plan.
type contender struct {
	report.Contender
	needs string   // a library that must be installed, or relayed
	tests []string // tests that it runs
	most  int      // bytes of its longest message, or 0 for the plan's limit
	run   runner
}

// isProgram reports whether a contender runs the NAS kernels. They take long and vary
// little, so they are left out of every second round.
func (c contender) isProgram() bool { return slices.Contains(plan.Kernels, c.tests[0]) }

// sequential is EP without mpj.
const sequential = "Go, sequential"

// follows reports whether a contender runs right after the previous one in the list. On a machine
// whose speed changes within minutes, only such a pair is comparable.
func (c contender) follows() bool { return c.Name == sequential }

// relayed is the requirement of contenders that are measured over a relay.
const relayed = "relayed peers"

// mostRelayed bounds the messages over a relay, in bytes. A relay is by far the slowest path; its
// cost is visible without the longest messages, and in one direction.
const mostRelayed = 4 << 20

// mostReplicated bounds the messages of collectives with replicas, in bytes. Then four or eight
// processes share the processors; the longest collectives take long and add no information.
const mostReplicated = 1 << 20

var overRelay = []string{plan.Latency, plan.Rate, plan.Bandwidth}

// messages are the tests of contenders that implement the whole interface.
var messages = slices.Concat(plan.Pairs, plan.Collectives)

// overPairs are the tests of contenders that have only a connection.
var overPairs = []string{plan.Latency, plan.Rate, plan.Bandwidth, plan.Bidirectional}

// communicating are the kernels that send much data. EP sends only a few messages, so its time does not
// depend on the transport.
var communicating = []string{"is", "cg", "mg", "ft"}

// contenders returns all contenders, in the order of the tables.
func contenders() []contender {
	onePeer := func(channel string) []string { return []string{"-a", "concentrate", "--channels", channel} }
	peers := func(channel string) []string { return []string{"-a", "spread", "--channels", channel} }
	yield := []string{"--mca", "mpi_yield_when_idle", "1"}
	shm := []string{"--mca", "btl", "self,vader"}
	tcp := []string{"--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo"}
	ucxShm := []string{"UCX_TLS=self,posix,sysv,cma"}
	ucxTCP := []string{"UCX_TLS=self,tcp", "UCX_NET_DEVICES=lo"}
	return []contender{
		{name("mpj shm", 2), "", messages, 0, ours(2, 1, onePeer("shm")...)},
		{name("mpj tcp", 2), "", messages, 0, ours(2, 1, peers("tcp")...)},
		{name("mpj stream", 2), "", messages, 0, ours(2, 1, peers("stream")...)},
		{name("mpj tcp, r=2", 2), "", plan.Pairs, 0, ours(2, 2, peers("tcp")...)},
		{name("mpj stream, r=2", 2), "", plan.Pairs, 0, ours(2, 2, peers("stream")...)},
		{name("mpj tcp, r=2", 2), "", plan.Collectives, mostReplicated, ours(2, 2, peers("tcp")...)},
		{name("mpj stream, r=2", 2), "", plan.Collectives, mostReplicated, ours(2, 2, peers("stream")...)},
		{name("mpj relay", 2), relayed, overRelay, mostRelayed, oursRelayed(2, 1)},
		{name("mpj relay, r=2", 2), relayed, overRelay, mostRelayed, oursRelayed(2, 2)},
		{name("Open MPI shm", 2), "openmpi", messages, 0, openMPI(2, shm...)},
		{name("Open MPI tcp", 2), "openmpi", messages, 0, openMPI(2, tcp...)},
		{name("MPICH shm", 2), "mpich", messages, 0, mpich(2, ucxShm...)},
		{name("MPICH tcp", 2), "mpich", messages, 0, mpich(2, ucxTCP...)},
		{name("Unix socket", 2), "", overPairs, 0, raw("unix")},
		{name("TCP", 2), "", overPairs, 0, raw("tcp")},
		{name("TLS 1.3", 2), "", overPairs, 0, raw("tls")},
		{name("libp2p TLS", 2), "", overPairs, 0, raw("libp2p")},
		{name("libp2p Noise", 2), "", overPairs, 0, raw("libp2p-noise")},
		{name("libp2p TLS, relayed", 2), "", overRelay, mostRelayed, raw("libp2p-relay")},

		{name("mpj shm", 4), "", messages, 0, ours(4, 1, onePeer("shm")...)},
		{name("mpj tcp", 4), "", messages, 0, ours(4, 1, peers("tcp")...)},
		{name("mpj stream", 4), "", messages, 0, ours(4, 1, peers("stream")...)},
		{name("Open MPI shm", 4), "openmpi", messages, 0, openMPI(4, append(yield, shm...)...)},
		{name("Open MPI tcp", 4), "openmpi", messages, 0, openMPI(4, append(yield, tcp...)...)},
		// MPICH does not yield: with more processes than processors, a barrier takes milliseconds
		// there, and the comparison is useless.

		{name("mpj shm", 2), "", []string{"ep"}, 0, ourKernels(2, onePeer("shm")...)},
		{name(sequential, 2), "", []string{"ep"}, 0, alone(2)},
		{name("mpj shm", 2), "", communicating, 0, ourKernels(2, onePeer("shm")...)},
		{name("mpj tcp", 2), "", communicating, 0, ourKernels(2, peers("tcp")...)},
		{name("mpj stream", 2), "", communicating, 0, ourKernels(2, peers("stream")...)},
		{name("mpj tcp, r=2", 2), "", communicating, 0, ourKernels(2, append(peers("tcp"), "-r", "2")...)},
		{name("Open MPI shm", 2), "openmpi", plan.Kernels, 0, openMPIKernels(2, shm...)},
		{name("Open MPI tcp", 2), "openmpi", communicating, 0, openMPIKernels(2, tcp...)},
		{name("MPICH shm", 2), "mpich", plan.Kernels, 0, mpichKernels(2, ucxShm...)},
		{name("MPICH tcp", 2), "mpich", communicating, 0, mpichKernels(2, ucxTCP...)},
	}
}

func name(s string, processes int) report.Contender {
	return report.Contender{Name: s, Processes: processes}
}

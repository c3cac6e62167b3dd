package submit

import (
	"bytes"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// TestBacklogIsBounded: a backlog is limited however small the messages are, and each
// message costs as much as the previous one, since a peer may send very many.
func TestBacklogIsBounded(t *testing.T) {
	late := proc(0, 2)
	for name, c := range map[string]struct {
		says view.Process
		m    *jobpb.FromPeer
	}{
		"output of a replica that is not an output leader": {other, outputMessage(other, job.Stdout, 0, false)},
		"words of one that has not joined":                 {late, healedMessage(late)},
	} {
		t.Run(name, func(t *testing.T) {
			e := newHearing(t)
			l := e.peers.runsOn[other]
			e.peers.runsOn[late] = l
			said := 0
			for ; l.err == nil && said <= maxEarly/messageOverhead; said++ {
				if r := e.handle(received{link: l, msg: c.m}); r != nil {
					t.Fatal(r)
				}
			}
			if l.err == nil {
				t.Errorf("after %d messages it is still heard", said)
			}
		})
	}
}

// TestBacklogHoldsAllBufferedOutput: a backlog has room for all output that a peer buffers of both
// streams, even if every line is empty and has a message of its own.
func TestBacklogHoldsAllBufferedOutput(t *testing.T) {
	const lines, lastRead = (1 << 20) / (1 + outputOverhead), 64 << 10
	e := newHearing(t)
	l := e.peers.runsOn[other]
	for _, s := range []job.Stream{job.Stdout, job.Stderr} {
		for i := range uint64(lines) {
			e.handle(received{link: l, msg: outputMessage(other, s, i, false, "\n")})
		}
		e.handle(received{link: l, msg: &jobpb.FromPeer{Body: &jobpb.FromPeer_Output{Output: &jobpb.Output{
			Process: jobpb.FromProcess(other), Stream: uint32(s), First: lines, Data: bytes.Repeat([]byte("\n"), lastRead),
		}}}})
	}
	e.outputs.leaders[other] = true
	if r := e.outputEarly(); r != nil || l.err != nil {
		t.Fatalf("result %v, link %v", r, l.err)
	}
	for _, s := range []job.Stream{job.Stdout, job.Stderr} {
		if got := e.outputs.emission.Next(0, s); got != lines+lastRead {
			t.Errorf("the user gets %d lines, want %d", got, lines+lastRead)
		}
	}
}

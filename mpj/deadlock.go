package mpj

import (
	"fmt"
	"strings"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/deadlock"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// reportedMost bounds the number of ranks that a report describes.
const reportedMost = 32

// reportOf describes the deadlocked ranks and the calls in which they wait.
func reportOf(stuck []bool, states []deadlock.State) string {
	var lines []string
	n := 0
	for rank, s := range states {
		switch {
		case s.Ended:
			lines = append(lines, fmt.Sprintf("rank %d has finalized", rank))
			continue
		case !stuck[rank]:
			continue
		}
		if n++; n > reportedMost {
			continue
		}
		for _, w := range s.Waits {
			lines = append(lines, fmt.Sprintf("rank %d waits in %s", rank, w.Text))
		}
	}
	if n > reportedMost {
		lines = append(lines, fmt.Sprintf("further ranks: %d", n-reportedMost))
	}
	return verdict(stuck, states) + "\n  " + strings.Join(lines, "\n  ")
}

// verdict names the deadlocked ranks.
func verdict(stuck []bool, states []deadlock.State) string {
	var names []string
	others := false
	for rank, s := range states {
		if stuck[rank] {
			names = append(names, fmt.Sprint(rank))
		} else if !s.Ended {
			others = true
		}
	}
	switch {
	case !others:
		return "no rank can proceed"
	case len(names) == 1:
		return "rank " + names[0] + " can never proceed"
	}
	return "ranks " + strings.Join(names[:min(len(names), reportedMost)], ", ") + " wait for each other and can never proceed"
}

// describe returns a description of a call of this process, and the world ranks that may complete
// the call. The list is empty if only this process may complete it.
func (w *World) describe(call engineapi.Call) (text string, ranks []int) {
	c := fromBase(w.base.Process().Comm(call.Context >> 8))
	if c == nil {
		c = w.Comm
	}
	if call.Kind == engineapi.Operating {
		return "Wait for a local operation", nil
	}
	if call.Peer == AnySource {
		ranks = c.namedGroup().members
	} else {
		ranks = []int{call.Peer}
	}
	slot := call.Context & 0xff
	if slot != messageSlot {
		return fmt.Sprintf("%s, in which it needs rank %s", core.CalledIn(&c.base, slot), peerName(c, call.Peer)), ranks
	}
	return describeMessage(c, call), ranks
}

// describeMessage describes a call that waits for messages of the program.
func describeMessage(c *Comm, call engineapi.Call) string {
	if call.Kind == engineapi.Sending {
		return fmt.Sprintf("Send(dest %s, tag %d, %d bytes, %s): no receive matches", peerName(c, call.Peer), call.Tag, call.Size, c.base.Title())
	}
	name := "Recv"
	if call.Kind == engineapi.Probing {
		name = "Probe"
	}
	text := fmt.Sprintf("%s(source %s, tag %s, %s)", name, peerName(c, call.Peer), core.TagText(int(call.Tag)), c.base.Title())
	var here []string
	for _, s := range call.Unexpected {
		here = append(here, fmt.Sprintf("tag %d from rank %s", s.Tag, peerName(c, s.Source)))
	}
	if len(here) > 0 {
		text += ": the messages that have arrived have " + strings.Join(here, ", ")
	}
	return text
}

func peerName(c *Comm, world int) string {
	if world == AnySource {
		return "AnySource"
	}
	return fmt.Sprint(c.rankOf(world))
}

package launch

import (
	"errors"
	"fmt"
	"strings"

	"github.com/libp2p/go-libp2p/p2p/net/swarm"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/outbox"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
	"github.com/p2pmpi/p2pmpi/peer/launch/switchboard"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// Messages of a peer on the control stream.

// maxText bounds texts for people, in bytes.
const maxText = 4096

func text(err error) string {
	if err == nil {
		return ""
	}
	return clip(withoutAddresses(err))
}

// withoutAddresses returns the text of err without the result for each address that libp2p has dialed.
// Other peers name these addresses, and could otherwise scan this machine's network.
func withoutAddresses(err error) string {
	if dialled, ok := errors.AsType[*swarm.DialError](err); ok {
		return strings.ReplaceAll(err.Error(), dialled.Error(), fmt.Sprintf("peer %s was not reached", dialled.Peer))
	}
	return err.Error()
}

// clip makes a text that may come from a program or a file name valid UTF-8 of at most maxText bytes.
func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxText)], "?") }

func staging(done, total int64) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Staging{Staging: &jobpb.Staging{Bytes: done, Total: total}}}
}

func prepared(err error, machine []byte) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Prepared{Prepared: &jobpb.Prepared{Error: text(err), Machine: machine}}}
}

func started(err error, distances []*jobpb.Distance) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Started{Started: &jobpb.Started{Error: text(err), Distances: distances}}}
}

func added(p view.Process, key reservation.Key, err error) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Added{Added: &jobpb.Added{Process: jobpb.FromProcess(p), Key: key[:], Error: text(err)}}}
}

func initialized(p view.Process, key []byte) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Initialized{
		Initialized: &jobpb.Initialized{Process: jobpb.FromProcess(p), Key: key},
	}}
}

func finalized(p view.Process) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Finalized{
		Finalized: &jobpb.Finalized{Process: jobpb.FromProcess(p)},
	}}
}

func aborted(p view.Process, code int, reason string) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Aborted{Aborted: &jobpb.Aborted{
		Process: jobpb.FromProcess(p), Code: int32(code), Reason: clip(reason),
	}}}
}

func diverged(p view.Process, d protection.Divergence) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Diverged{Diverged: jobpb.FromDivergence(p, d)}}
}

func healed(p view.Process, messages, bytes uint64) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Healed{Healed: &jobpb.Healed{
		Process: jobpb.FromProcess(p), Messages: messages, Bytes: bytes,
	}}}
}

func unkept(p view.Process, reason string, lapsed bool) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Unkept{Unkept: &jobpb.Unkept{
		Process: jobpb.FromProcess(p), Reason: clip(reason), Lapsed: lapsed,
	}}}
}

func leaving(p view.Process) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Leaving{Leaving: &jobpb.Leaving{Process: jobpb.FromProcess(p)}}}
}

func paused(p Pause) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Paused{Paused: &jobpb.Paused{Rule: p.Rule, MostNs: int64(p.Most)}}}
}

func ahead(p view.Process) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Ahead{Ahead: &jobpb.Ahead{Process: jobpb.FromProcess(p)}}}
}

func stalled(p view.Process) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Stalled{Stalled: &jobpb.Stalled{Process: jobpb.FromProcess(p)}}}
}

func upToDate(p view.Process, a protection.UpToDate) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_UpToDate{UpToDate: &jobpb.UpToDate{
		Process: jobpb.FromProcess(p), Since: a.Since, Term: a.Term,
	}}}
}

func exited(p *process, e supervisor.Exit) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Exited{Exited: &jobpb.Exited{
		Process: jobpb.FromProcess(p.id), Code: int32(e.Code), Signal: e.Signal, Reason: p.reason,
		Initialized: p.initialized, Finalized: p.finalized, Limit: string(p.excess),
	}}}
}

func outputOf(p view.Process, stream int, b outbox.Batch) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Output{Output: &jobpb.Output{
		Process: jobpb.FromProcess(p), Stream: uint32(stream), First: b.First, Data: b.Data, End: b.End,
	}}}
}

func accountOf(p *process) *jobpb.FromPeer {
	m := &jobpb.Account{Process: jobpb.FromProcess(p.id), Summed: p.account.summed, Sums: jobpb.FromSums(p.account.sums)}
	if o := &p.out[stdout]; o.sum != nil {
		m.Digested, m.Printed, m.Digest = true, o.printed, o.sum.Sum(nil)
	}
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Account{Account: m}}
}

func suspect(peer []byte, generation uint32) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Suspect{Suspect: &jobpb.Suspect{Peer: peer, Generation: generation}}}
}

func collected(p view.Process, manifest []byte, err error) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Collected{Collected: &jobpb.Collected{
		Process: jobpb.FromProcess(p), Manifest: manifest, Error: text(err),
	}}}
}

func resumed(err error, said int) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Resumed{Resumed: &jobpb.Resumed{Error: text(err), Said: uint64(said)}}}
}

func outside(reason string) *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Outside{Outside: &jobpb.Outside{Reason: reason}}}
}

func stopped() *jobpb.FromPeer {
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Stopped{Stopped: &jobpb.Stopped{}}}
}

func pathsOf(paths []switchboard.Path) *jobpb.FromPeer {
	m := &jobpb.Paths{}
	for _, p := range paths {
		why := clip(p.Why)
		if p.Err != nil {
			why = text(p.Err)
		}
		m.Paths = append(m.Paths, &jobpb.Path{Peer: []byte(p.Peer), Kind: string(p.Kind), Relay: []byte(p.Relay), Why: why,
			Way: string(p.Way), RoundTripUs: uint32(p.RoundTrip.Microseconds())})
	}
	return &jobpb.FromPeer{Body: &jobpb.FromPeer_Paths{Paths: m}}
}

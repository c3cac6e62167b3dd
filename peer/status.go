package peer

import (
	"context"
	"os"

	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// Connected reports whether this peer has a connection to any other peer.
func (p *Peer) Connected() bool { return len(p.net.Host.Network().Peers()) > 0 }

// Status returns the peer's current state. It measures the round trips to connected peers, which takes one
// second at most.
func (p *Peer) Status(ctx context.Context) status.Status {
	s := status.Status{
		Peer:        p.ID().String(),
		Release:     version.Release,
		Protocol:    version.Protocol,
		Network:     p.admission.ID,
		Home:        string(p.home),
		Process:     os.Getpid(),
		Since:       p.started,
		Addresses:   p.Addresses(),
		Granted:     p.granted(),
		Use:         status.UseOf(p.net.Host),
		Unprotected: []status.Unprotected{},
		Unread:      p.terms.suspend.Unread(),
		Hosted:      []status.HostedJob{}, // a list in JSON even when empty
		Submitted:   []status.Submitted{},
		Connections: status.Connections(ctx, p.net.Host, p.net.Punches),
		Known:       []status.Known{},
	}
	if p.slots != nil {
		snapshot := p.slots.Snapshot()
		s.Unprotected = status.UnprotectedBy(p.terms.sandbox)
		s.Slots = p.slotStatus(snapshot)
		s.Hosted = status.HostedBy(snapshot, p.launcher.Jobs(), p.launcher.Channels(), s.Connections)
	}
	for _, j := range p.submitter.Jobs() {
		s.Submitted = append(s.Submitted, status.Submitted{Status: j, Detached: p.jobs.WithoutListenerSince(j.Job)})
	}
	for _, k := range p.discovery.Peers() {
		s.Known = append(s.Known, status.KnownPeer(k, p.admission.OwnerOf(k.AddrInfo.ID, k.Offer.Owner)))
	}
	return s
}

// slotStatus returns the state of the slots. The peer is a volunteer.
func (p *Peer) slotStatus(s reservation.Status) status.Slots {
	return status.Slots{
		Total: s.Total, Free: s.Free, Held: s.Held, Confirmed: s.Confirmed, Running: s.Running,
		Draining: s.Draining, Paused: p.terms.suspend.Rule(), NoDisk: p.terms.fullDisk(),
	}
}

// granted returns the limits of jobs here, or nil if this peer hosts no jobs.
func (p *Peer) granted() *status.Granted {
	if p.launcher == nil {
		return nil
	}
	owners := p.terms.policy
	return &status.Granted{
		Grant:      p.launcher.Grant(),
		Terms:      owners.Terms(p.terms.sandboxComplete()),
		Unenforced: p.launcher.Unenforced(owners.Limits()...),
	}
}

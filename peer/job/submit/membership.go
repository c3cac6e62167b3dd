package submit

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A membership holds the job's peers and the membership table: which peer runs each process.
type membership struct {
	j           *run
	inbox       inbox
	links       []*link // in the order of the placements; recruits follow
	runsOn      map[view.Process]*link
	keys        []byte   // public key of each process that the job began with, rank by rank; zeros if it has none
	reopens     bool     // broken streams are reopened: while the peers stage the job, and once it has begun
	sites       []int    // number of the site of each peer that the job started with
	local       []bool   // whether that peer is at the submitter's site
	stopServing []func() // end the offers of the job's contents
}

func newMembership(j *run) *membership {
	return &membership{
		j: j, inbox: newInbox(),
		runsOn: make(map[view.Process]*link), keys: make([]byte, j.req.N*j.req.R*proclink.KeySize),
	}
}

// add adds a peer, which is to run the processes of its link.
func (m *membership) add(l *link) {
	m.links = append(m.links, l)
	for _, p := range l.processes {
		m.runsOn[p] = l
	}
}

func (m *membership) linkTo(id p2ppeer.ID) *link {
	for _, l := range m.links {
		if l.peer == id {
			return l
		}
	}
	return nil
}

// peerOf returns the short name of the peer that runs p, for the user.
func (m *membership) peerOf(p view.Process) string {
	if l := m.runsOn[p]; l != nil {
		return short(l.peer)
	}
	return "that is not known here"
}

// reaches reports whether the peer that runs p is known here and has not been given up.
func (m *membership) reaches(p view.Process) bool {
	l := m.runsOn[p]
	return l != nil && l.err == nil
}

// suspended reports whether the owner of p's peer has suspended p.
func (m *membership) suspended(p view.Process) bool {
	l := m.runsOn[p]
	return l != nil && l.reported.suspended
}

// whereAll lists the first few processes with their peers, and the number of the rest.
func (m *membership) whereAll(ps []view.Process) string {
	const most = 4
	var parts []string
	for _, p := range ps[:min(len(ps), most)] {
		parts = append(parts, fmt.Sprintf("rank %d replica %d on peer %s", p.Rank, p.Replica, m.peerOf(p)))
	}
	if more := len(ps) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

// partners returns the job's peers that are not lost to it.
func (m *membership) partners() []p2ppeer.ID {
	var out []p2ppeer.ID
	for _, l := range m.links {
		if l.err == nil && !l.retired {
			out = append(out, l.peer)
		}
	}
	return out
}

// count counts the links for which is holds, of those to peers that are not lost.
func (m *membership) count(is func(*link) bool) (n int) {
	for _, l := range m.links {
		if l.err == nil && is(l) {
			n++
		}
	}
	return n
}

// unstopped counts the peers that may still confirm that they have stopped.
func (m *membership) unstopped() int {
	return m.count(func(l *link) bool { return !l.stopped })
}

// fault returns an error that names the lost peers, or nil if there are none.
func (m *membership) fault(doing string) error {
	var first error
	more := 0
	for _, l := range m.links {
		switch {
		case l.err == nil:
		case first == nil:
			first = fmt.Errorf("%s %s: %w", doing, l.peer, l.err)
		default:
			more++
		}
	}
	if more > 0 {
		return fmt.Errorf("%w (and %d other peers failed)", first, more)
	}
	return first
}

// broadcast sends a message to every peer that has been told to start.
func (m *membership) broadcast(message *jobpb.ToPeer) {
	for _, l := range m.links {
		if !l.retired && (l.recruit == nil || l.recruit.phase >= recruitStarting) {
			l.send(message)
		}
	}
}

// recordKey records the public key of a process, which authenticates it to other processes.
func (m *membership) recordKey(p view.Process, key []byte) {
	if len(key) == proclink.KeySize && p.Replica < m.j.req.R {
		copy(m.keys[(p.Rank*m.j.req.R+p.Replica)*proclink.KeySize:], key)
	}
}

// row returns the row of a process in the membership table.
func (m *membership) row(l *link, p view.Process) *jobpb.Member {
	return &jobpb.Member{
		Process: jobpb.FromProcess(p), Peer: []byte(l.peer), Addrs: m.addrs(l.peer),
		Machine: []byte(l.reported.machine), Key: m.keyOf(l, p),
	}
}

// keyOf returns the public key of a process on l. It is nil if the process has not reported it, or
// if Begin carries it.
func (m *membership) keyOf(l *link, p view.Process) []byte {
	if p.Replica < m.j.req.R {
		return nil
	}
	return l.keys[p]
}

// addrs returns the addresses at which the job's other peers can reach p.
func (m *membership) addrs(p p2ppeer.ID) [][]byte {
	var known []ma.Multiaddr
	if p == m.j.s.cfg.Host.ID() {
		known = m.j.s.cfg.Host.Addrs()
	} else {
		known = m.j.s.cfg.Host.Peerstore().Addrs(p)
	}
	var out [][]byte
	for _, a := range known {
		if b := a.Bytes(); len(b) <= jobpb.MaxAddr && len(out) < jobpb.MaxAddrs {
			out = append(out, b)
		}
	}
	return out
}

// entered reports whether all peers have been told where p runs although p is not in v yet.
// No peer accepts a view with a process that it does not know.
func (m *membership) entered(p view.Process, v view.View) bool {
	return m.runsOn[p] != nil && v.State(p) == view.Vacant
}

// numbersKnown reports whether the numbers of all peers in the view group are known, so that a new
// peer can get an unused one.
func (m *membership) numbersKnown() bool {
	for _, l := range m.runsOn {
		if l.number == 0 && l.peer != m.j.s.cfg.Host.ID() {
			return false
		}
	}
	return true
}

// serve offers the job's contents to peers, which share the fetched contents with each other. It
// protects the connections to them from being trimmed.
func (m *membership) serve(peers ...p2ppeer.ID) {
	for _, p := range peers {
		m.j.s.cfg.Host.ConnManager().Protect(p, m.tag())
	}
	m.stopServing = append(m.stopServing, m.j.s.cfg.Files.Serve(m.j.spec.ID, peers, maps.Clone(m.j.local)))
}

// tag returns the job's tag for the connection manager.
func (m *membership) tag() string { return "job " + m.j.spec.ID }

// contacts returns the contacts of a job's peers, and their links in the same order.
func (m *membership) contacts() (cs []contact, links []*link) {
	for _, l := range m.links {
		if l.retired || l.peer == m.j.s.cfg.Host.ID() {
			continue
		}
		cs, links = append(cs, contact{peer: short(l.peer), silent: l.suspicion.duration()}), append(links, l)
	}
	return cs, links
}

// backSince reports whether a peer has reconnected since the given time.
func (m *membership) backSince(t time.Time) bool {
	return m.count(func(l *link) bool { return !l.session.disconnected && l.session.reopened.After(t) }) > 0
}

// unheardPeers returns the links to peers that have not reported for the tolerated time.
func (m *membership) unheardPeers(now time.Time, tolerated time.Duration) (out []*link) {
	for _, l := range m.links {
		mute := l.err != nil || l.retired || l.session.disconnected || l.recruit != nil || l.peer == m.j.s.cfg.Host.ID()
		if !mute && now.Sub(l.heardAt) > tolerated-reportPeriod {
			out = append(out, l)
		}
	}
	return out
}

// addPlaceholder adds a placeholder for a process that joins by change c if its peer is not recorded.
// The process continues to run: it may be the only one left of its rank.
func (m *membership) addPlaceholder(c view.Change) {
	if _, known := m.runsOn[c.Process]; known || !c.Joins() {
		return
	}
	l := newLink(reservation.Placement{}, c.Process)
	l.err, l.redeemed = errUnknown, true
	l.cancel()
	m.runsOn[c.Process] = l
}

var errUnknown = errors.New("its peer is unknown")

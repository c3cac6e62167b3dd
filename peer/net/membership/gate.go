package membership

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/connmgr"
	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/peer/net/membership/internal/pb"
)

// maxExchanges is the maximum number of inbound connections on which proofs are exchanged at the same time.
const maxExchanges = 128

// Config describes this peer.
type Config struct {
	Peer p2ppeer.ID
	// Invitation is this peer's invitation, or nil in an open network. The other fields then have no effect.
	Invitation *Invitation
	// Home is the private key that signs vouchers for this peer, or nil. A submit-only peer uses the key of its
	// user's p2pboot.
	Home crypto.PrivKey
	Log  zerolog.Logger
}

// A Gate decides which peers this one may be connected to. It is libp2p's connection gater and creates the
// transports that exchange proofs. Its methods are safe for concurrent use.
type Gate struct {
	cfg       Config
	conduct   *misconduct.Log
	exchanges chan struct{} // one element per inbound exchange in progress

	mu         sync.Mutex
	register   register
	invitation *Invitation
	refused    *Refusal // last refusal by a peer that this one has dialled
}

var _ connmgr.ConnectionGater = (*Gate)(nil)

// NewGate returns the gate of a peer. The error is a *BoundError if the invitation is bound to another
// peer.
func NewGate(cfg Config) (*Gate, error) {
	g := newGate(cfg)
	if g.Open() {
		return g, nil
	}
	_, err := cfg.Invitation.proof(cfg.Peer, cfg.Home)
	return g, err
}

func newGate(cfg Config) *Gate {
	return &Gate{
		cfg: cfg, conduct: misconduct.New(cfg.Log),
		exchanges: make(chan struct{}, maxExchanges), invitation: cfg.Invitation,
	}
}

// Open reports whether this peer is in an open network.
func (g *Gate) Open() bool { return g.cfg.Invitation == nil }

// proof returns the proof that self shows. self is this peer, or one of its additional hosts.
func (g *Gate) proof(self p2ppeer.ID) *pb.Proof {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Open() {
		return nil
	}
	p, err := g.invitation.proof(self, g.cfg.Home)
	if err != nil {
		g.cfg.Log.Error().Err(err).Msg("this peer's token cannot be sent")
	}
	return p
}

func (g *Gate) judge(p *pb.Proof, peer p2ppeer.ID) (pb.Verdict, Token) {
	if g.Open() {
		return pb.Verdict_OPEN, Token{}
	}
	return judge(p, peer, g.cfg.Invitation.Network, time.Now())
}

// conclude records the verdict on peer, which has shown the token t.
func (g *Gate) conclude(peer p2ppeer.ID, v pb.Verdict, t Token) error {
	g.mu.Lock()
	switch {
	case v == pb.Verdict_ADMITTED:
		g.register.admit(peer, t, time.Now())
	case !g.Open():
		g.register.refuse(peer, time.Now())
	}
	g.mu.Unlock()
	if v == pb.Verdict_ADMITTED {
		return nil
	}
	r := &Refusal{Peer: peer, verdict: v}
	g.conduct.Note(peer, "not a member of the same network", r)
	return r
}

func (g *Gate) refusedBy(peer p2ppeer.ID, v pb.Verdict) error {
	r := &Refusal{Peer: peer, Theirs: true, verdict: v}
	g.mu.Lock()
	if v == pb.Verdict_OPEN && !g.Open() {
		g.register.refuse(peer, time.Now()) // a peer of an open network has no token
	}
	g.mu.Unlock()
	g.conduct.Note(peer, "not a member of the same network", r)
	return r
}

// ended records the result err of an exchange with peer on a connection of direction dir. It keeps the last
// refusal by a peer that this one has dialled. If a peer that has dialled this one stalls, it is refused for a
// while, unless it is a member.
func (g *Gate) ended(peer p2ppeer.ID, dir network.Direction, err error) {
	if err == nil {
		return
	}
	r, refusal := errors.AsType[*Refusal](err)
	g.mu.Lock()
	switch {
	case refusal && r.Theirs && dir == network.DirOutbound:
		g.refused = r
	case !refusal && dir == network.DirInbound && errors.Is(err, os.ErrDeadlineExceeded):
		if !g.Open() && !g.register.member(peer, time.Now()) {
			g.register.refuse(peer, time.Now())
		}
	}
	g.mu.Unlock()
	if !refusal {
		g.conduct.Ended(peer, "tokens not exchanged", err)
	}
}

// Person returns the person whose token has admitted a peer of a private network (Token.person). It returns ""
// if the peer has not been connected for a while.
func (g *Gate) Person(p p2ppeer.ID) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p == g.cfg.Peer {
		return g.invitation.person()
	}
	return g.register.person(p, time.Now())
}

// Refused returns the last refusal by a peer that this one has dialled, or nil.
func (g *Gate) Refused() *Refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

var (
	errRecentlyRefused = errors.New("refused recently")
	errBusy            = errors.New("too many token exchanges at once")
)

// enter reserves a place for an exchange with peer, and leave releases the place. An outbound exchange needs no
// place, so peers that connect and then stall cannot prevent this peer's own dials.
func (g *Gate) enter(peer p2ppeer.ID, dir network.Direction) (leave func(), err error) {
	if g.recentlyRefused(peer) {
		return nil, errRecentlyRefused
	}
	if dir == network.DirOutbound {
		return func() {}, nil
	}
	select {
	case g.exchanges <- struct{}{}:
		return func() { <-g.exchanges }, nil
	default:
		return nil, errBusy
	}
}

func (g *Gate) recentlyRefused(p p2ppeer.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.register.recentlyRefused(p, time.Now())
}

// InterceptPeerDial rejects dials to recently refused peers.
func (g *Gate) InterceptPeerDial(p p2ppeer.ID) bool { return !g.recentlyRefused(p) }

// InterceptAddrDial implements connmgr.ConnectionGater.
func (g *Gate) InterceptAddrDial(p2ppeer.ID, ma.Multiaddr) bool { return true }

// InterceptAccept implements connmgr.ConnectionGater.
func (g *Gate) InterceptAccept(network.ConnMultiaddrs) bool { return true }

// InterceptSecured rejects connections of recently refused peers.
func (g *Gate) InterceptSecured(_ network.Direction, p p2ppeer.ID, _ network.ConnMultiaddrs) bool {
	return !g.recentlyRefused(p)
}

// InterceptUpgraded rejects connections of peers that are not admitted, whatever the transport. A transport
// without an exchange of proofs therefore connects no peer.
func (g *Gate) InterceptUpgraded(c network.Conn) (bool, control.DisconnectReason) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.register.member(c.RemotePeer(), time.Now()), 0
}

// expired returns the peers whose tokens have expired since the last call.
func (g *Gate) expired(connected func(p2ppeer.ID) bool, now time.Time) []p2ppeer.ID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.register.review(connected, now)
}

// renew replaces the invitation with i and returns true, if i is a newer invitation to the same network that
// this peer can use.
func (g *Gate) renew(i *Invitation) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i.Network != g.cfg.Invitation.Network || !i.Expires.After(g.invitation.Expires) {
		return false
	}
	if _, err := i.proof(g.cfg.Peer, g.cfg.Home); err != nil {
		return false
	}
	g.invitation = i
	return true
}

package peer

import (
	"cmp"
	"os"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/net/networks"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// network returns the network that the owner has chosen.
func (c Config) network() networks.Choice {
	return networks.Choice{Name: c.Network, Open: c.Open, Token: c.Token, Home: cmp.Or(c.MemberOf, c.Home)}
}

// NetworkID returns the identifier of the network in c among its peers. For a private network it is more
// than the name. The error states why the network's token cannot be used.
func (c Config) NetworkID() (string, error) { return c.network().ID() }

// OpenWarning returns a warning if a network with a non-default name is open to any peer because the home
// has no invitation to it. It is empty if Open confirms that the network is meant to be open.
func (c Config) OpenWarning() string { return c.network().OpenWarning() }

// startMembership determines whether the network is private, and creates the gate that keeps out peers that
// are not members.
func (p *Peer) startMembership() error {
	id, err := p2ppeer.IDFromPrivateKey(p.key)
	if err != nil {
		return err
	}
	if warning := p.cfg.OpenWarning(); warning != "" && p.role == Volunteer {
		p.log.Warn().Msg(warning)
	}
	p.admission, err = networks.Enter(p.cfg.network(), id, p.voucher, p.log)
	return err
}

// voucher returns the key of the home that this peer belongs to, or nil if there is none. That key confirms
// the peer's membership to others.
func (p *Peer) voucher() crypto.PrivKey {
	if p.role == Volunteer {
		return p.key // for additional hosts that libp2p creates
	}
	file := homedir.Dir(p.cfg.MemberOf).Identity()
	if _, err := os.Stat(file); p.cfg.MemberOf == "" || err != nil {
		return nil
	}
	key, err := homedir.LoadIdentity(file)
	if err != nil {
		p.log.Debug().Err(err).Msg("cannot confirm the membership of this peer: no key of its home")
		return nil
	}
	return key
}

// Refused returns the reason why another peer has refused this one: one of the two is not a member of the
// other's private network. It is nil if no peer has.
func (p *Peer) Refused() error { return p.admission.Refused() }

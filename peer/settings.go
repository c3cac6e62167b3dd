package peer

import (
	"cmp"
	"errors"
	"net"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/p2pmpi/p2pmpi/peer/net/networks"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/peer/owner/machine"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
	"github.com/p2pmpi/p2pmpi/peer/owner/presence"
	"github.com/p2pmpi/p2pmpi/peer/owner/suspend"
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

// policy returns the owner's policy for the peer self; private reports whether the network is private.
func (c Config) policy(self p2ppeer.ID, private bool, m limits.Machine) (policy.Policy, error) {
	allow, err1 := peerIDs("allow", c.Allow)
	deny, err2 := peerIDs("deny", c.Deny)
	strangers, err3 := limits.Strangers(m, c.Slots).With(c.SlotLimits)
	rules, err4 := policy.ParseRules(c.Accept, strangers)
	quiet, err5 := policy.ParseHours(c.QuietHours)
	return policy.Policy{
		Self: self, Private: private, Allow: allow, Deny: deny, Rules: rules, Quiet: quiet,
		Unconfined: !c.RequireConfinement,
	}, errors.Join(err1, err2, err3, err4, err5)
}

// suspendPolicy returns the owner's suspend rules.
func (c Config) suspendPolicy() (out suspend.Policy, err error) {
	if out.Rules, err = presence.ParseRules(c.PauseWhen); err != nil {
		return out, err
	}
	if out.Quiet, err = policy.ParseHours(c.QuietHours); err != nil {
		return out, err
	}
	out.Treatment, err = suspend.ParseTreatment(c.PauseJobs)
	return out, err
}

// dataListen returns the address for direct connections in the launcher's form; "" means none.
func (c Config) dataListen() string {
	switch c.DataListen {
	case "none":
		return ""
	case "":
	default:
		return c.DataListen
	}
	address := ""
	for _, a := range c.Listen {
		ip, err := manet.ToIP(a)
		switch {
		case err != nil:
		case ip.IsUnspecified():
			return ":0"
		case address == "":
			address = net.JoinHostPort(ip.String(), "0")
		}
	}
	return address
}

// grant returns the limits of jobs on this machine, for the given number of slots. home is the folder that
// holds the scratch folders.
func (c Config) grant(home string, slots int) (limits.Grant, error) {
	return limits.Default(machineAt(home), slots).With(c.SlotLimits, c.JobLimits)
}

// machineAt returns the machine's resources that limits apply to; the disk is that of home.
func machineAt(home string) limits.Machine {
	m := limits.Machine{Disk: machine.DiskFree(home)}
	if memory := machine.Memory(); memory != 0 && memory != machine.Unlimited {
		m.Memory = int64(memory)
	}
	return m
}

package networks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/peer/net/membership"
)

// Default is the name of the network that peers join unless their owners choose another.
const Default = "public"

// A Choice is the network that an owner has chosen for a peer.
type Choice struct {
	Name  string // name of the network
	Open  bool   // the owner confirms that it is an open network
	Token string // file with an invitation; if empty, the file in Home, if any
	Home  string // home with the invitations
}

// tokenFile returns the path of the token for the network: Token, or the file in Home. If the home has no folder
// for the network, the network is open and tokenFile returns "". If the folder has no usable token, tokenFile
// returns an error, so that a peer with a damaged home never joins an open network instead.
func (c Choice) tokenFile() (string, error) {
	if c.Token != "" {
		return c.Token, nil
	}
	if membership.CheckName(c.Name) != nil {
		return "", nil
	}
	folder := folderOf(c.Home, c.Name)
	if _, err := os.Stat(string(folder)); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", nil
	}
	if _, err := os.Stat(folder.token()); err != nil {
		return "", fmt.Errorf("network %s is private, but its token cannot be used: %w; accept an invitation with p2pboot network join, or remove %s to use an open network of that name",
			c.Name, err, folder)
	}
	return folder.token(), nil
}

// ID returns the identifier that the network's peers use: the name, followed by a digest of the owner's key if
// the network is private. The error states why the network's token cannot be used.
func (c Choice) ID() (string, error) {
	file, err := c.tokenFile()
	if err != nil || file == "" {
		return c.Name, err
	}
	i, err := readInvitation(file)
	if err != nil {
		return "", err
	}
	return i.Network.ID(), nil
}

// OpenWarning returns a warning if a network with a non-default name is open to any peer because the home has no
// invitation to it. If Open confirms that this is intended, OpenWarning returns "".
func (c Choice) OpenWarning() string {
	if file, err := c.tokenFile(); c.Open || c.Name == Default || err != nil || file != "" {
		return ""
	}
	return fmt.Sprintf("network %s is open: this home has no invitation to a private network of that name, so any peer can join, run jobs and receive their inputs; set --open to confirm that this is intended", c.Name)
}

// An Admission is the membership of a running peer in its network.
type Admission struct {
	Gate *membership.Gate // keeps out peers that are not members
	ID   string           // network ID, as used by its peers

	token string // token file; empty unless the network is private
}

// Enter determines whether the chosen network is private, and creates the gate of the peer self. voucher returns
// the key that signs vouchers for the peer, or nil. Enter calls voucher only for a private network.
func Enter(c Choice, self p2ppeer.ID, voucher func() crypto.PrivKey, log zerolog.Logger) (*Admission, error) {
	a := &Admission{ID: c.Name}
	cfg := membership.Config{Peer: self, Log: log}
	var err error
	if a.token, err = c.tokenFile(); err != nil {
		return nil, err
	}
	if a.token != "" {
		if cfg.Invitation, err = readInvitation(a.token); err != nil {
			return nil, err
		}
		private := cfg.Invitation.Network
		if c.Name != private.Name && c.Name != Default {
			return nil, fmt.Errorf("token %s is of network %s, and --network names %s", a.token, private.Name, c.Name)
		}
		a.ID = private.ID()
		log.Info().Str("network", private.ID()).Time("expires", cfg.Invitation.Expires).Msg("member of a private network")
		cfg.Home = voucher()
	}
	if a.Gate, err = membership.NewGate(cfg); err != nil {
		return nil, fmt.Errorf("join private network %s: %w; ask its owner for an invitation", cfg.Invitation.Network.Name, err)
	}
	return a, nil
}

// Serve starts the service that maintains the memberships of the peers to which h is connected. The service
// reads a renewed invitation from the token file.
func (a *Admission) Serve(h host.Host) *membership.Service {
	return membership.New(h, a.Gate, func() (*membership.Invitation, error) { return readInvitation(a.token) })
}

// OwnerOf returns the owner of a peer: the person in its token in a private network, else the owner in its
// offer, which is offered.
func (a *Admission) OwnerOf(id p2ppeer.ID, offered string) string {
	if a.Gate.Open() {
		return offered
	}
	return a.Gate.Person(id)
}

// Refused returns an error that states why another peer has refused this one, or nil. In each case, one of the
// two peers is not a member of the other's private network.
func (a *Admission) Refused() error {
	if r := a.Gate.Refused(); r != nil {
		return r
	}
	return nil
}

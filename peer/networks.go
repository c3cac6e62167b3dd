package peer

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
	"github.com/p2pmpi/p2pmpi/peer/internal/membership"
)

// A Membership is what a home has of a private network.
type Membership struct {
	Network string    `json:"network"`
	ID      string    `json:"id"`             // what the network goes by among its members
	Owner   string    `json:"owner"`          // peer ID of the owner's key
	Owned   bool      `json:"owned"`          // the home has that key
	Name    string    `json:"name,omitempty"` // of whom the owner has invited; empty: not said
	Holder  string    `json:"holder"`
	Bound   bool      `json:"bound"` // to the holder; else the token is for whoever has it
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
}

// A networkFolder is what a home keeps of one private network.
type networkFolder string

func (h home) networks() string { return filepath.Join(string(h), "networks") }

func (h home) network(name string) networkFolder {
	return networkFolder(filepath.Join(h.networks(), name))
}

func (n networkFolder) token() string { return filepath.Join(string(n), "token") }
func (n networkFolder) owner() string { return filepath.Join(string(n), "owner") }

// IDOf returns the ID of the peer that lives, or will live, on the home dir.
func IDOf(dir string) (p2ppeer.ID, error) {
	h, err := openHome(dir)
	if err != nil {
		return "", err
	}
	key, err := loadIdentity(h.identity())
	if err != nil {
		return "", &HomeError{string(h), err}
	}
	return p2ppeer.IDFromPrivateKey(key)
}

// CreateNetwork makes a private network that the home dir owns, and takes its peer
// in for the time lifetime, as one of person's, if that is not empty. It goes on where one
// that was interrupted had made the key.
func CreateNetwork(dir, name, person string, lifetime time.Duration) (Membership, error) {
	if err := errors.Join(membership.CheckName(name), membership.CheckPerson(person)); err != nil {
		return Membership{}, err
	}
	id, err := IDOf(dir)
	if err != nil {
		return Membership{}, err
	}
	folder := home(dir).network(name)
	if _, err := os.Stat(folder.token()); err == nil {
		return Membership{}, fmt.Errorf("network %s is in %s already: choose another name", name, folder)
	}
	if err := os.MkdirAll(string(folder), 0o700); err != nil {
		return Membership{}, &HomeError{dir, plainPathError(err)}
	}
	key, err := loadIdentity(folder.owner()) // made anew, unless this was interrupted before
	if err != nil {
		return Membership{}, &HomeError{dir, err}
	}
	now := time.Now()
	i, err := membership.Invite(key, name, person, id, now, now.Add(lifetime))
	if err != nil {
		return Membership{}, err
	}
	return describe(i, true), keepInvitation(folder, i)
}

// An Invitee is who is invited to a private network.
type Invitee struct {
	// Name is what the network's owner calls the person: the peers of all whom he calls the
	// same are of one owner. Empty: those that are admitted by this invitation are.
	Name string
	Peer string // ID of the only peer that is invited; empty: whoever has the invitation
}

// Invite returns the text of an invitation to the network name, which the home dir
// owns. An empty name is the only network that the home owns.
func Invite(dir, name string, whom Invitee, lifetime time.Duration) (string, error) {
	name, key, err := ownedNetwork(dir, name)
	if err != nil {
		return "", err
	}
	var holder p2ppeer.ID
	if whom.Peer != "" {
		if holder, err = p2ppeer.Decode(whom.Peer); err != nil {
			return "", fmt.Errorf("peer %q: not a peer ID, which p2pboot network show tells", whom.Peer)
		}
	}
	now := time.Now()
	i, err := membership.Invite(key, name, whom.Name, holder, now, now.Add(lifetime))
	if err != nil {
		return "", err
	}
	return i.Text()
}

// ownedNetwork returns the key of a network that dir owns.
func ownedNetwork(dir, name string) (string, crypto.PrivKey, error) {
	all, err := Memberships(dir)
	if err != nil {
		return "", nil, err
	}
	var owned []string
	for _, m := range all {
		if m.Owned && (name == "" || m.Network == name) {
			owned = append(owned, m.Network)
		}
	}
	switch {
	case len(owned) == 1:
	case name != "":
		return "", nil, fmt.Errorf("home %s does not own network %s: only the home that has created it can invite", dir, name)
	case len(owned) == 0:
		return "", nil, fmt.Errorf("home %s owns no network: make one with p2pboot network create NAME", dir)
	default:
		return "", nil, fmt.Errorf("home %s owns several networks: choose one with --network, of %s", dir, strings.Join(owned, ", "))
	}
	key, err := loadIdentity(home(dir).network(owned[0]).owner())
	if err != nil {
		return "", nil, &HomeError{dir, err}
	}
	return owned[0], key, nil
}

// IsSecret reports whether the invitation in text is for whoever has it.
func IsSecret(text string) bool {
	i, err := membership.ParseInvitation(text)
	return err == nil && !i.Bound()
}

// JoinNetwork takes the invitation in text into the home dir, unless that has one which
// expires later; it returns what the home has then. A peer that runs
// there as a member shows it to others within seconds.
func JoinNetwork(dir, text string) (Membership, error) {
	i, err := membership.ParseInvitation(text)
	if err != nil {
		return Membership{}, err
	}
	if !time.Now().Before(i.Expires) {
		return Membership{}, fmt.Errorf("the invitation to network %s has expired on %s: ask its owner for a new one", i.Network.Name, i.Expires.Format(time.DateTime))
	}
	id, err := IDOf(dir)
	if err != nil {
		return Membership{}, err
	}
	if i.Bound() && i.Holder != id {
		return Membership{}, &membership.BoundError{To: i.Holder, Peer: id}
	}
	folder := home(dir).network(i.Network.Name)
	old, err := readInvitation(folder.token())
	if err == nil && old.Network.Owner != i.Network.Owner {
		return Membership{}, fmt.Errorf("home %s is in a network %s of another owner: leave that by removing %s first", dir, i.Network.Name, folder)
	}
	if err == nil && old.Expires.After(i.Expires) && (!old.Bound() || old.Holder == id) {
		return describe(old, owns(folder)), nil // it has a better one
	}
	if err := os.MkdirAll(string(folder), 0o700); err != nil {
		return Membership{}, &HomeError{dir, plainPathError(err)}
	}
	return describe(i, owns(folder)), keepInvitation(folder, i)
}

// Memberships returns the private networks of the home dir, by name.
func Memberships(dir string) ([]Membership, error) {
	entries, err := os.ReadDir(home(dir).networks())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &HomeError{dir, plainPathError(err)}
	}
	var out []Membership
	for _, e := range entries {
		folder := home(dir).network(e.Name())
		i, err := readInvitation(folder.token())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, &HomeError{dir, err}
		}
		out = append(out, describe(i, owns(folder)))
	}
	return out, nil
}

func owns(folder networkFolder) bool {
	_, err := os.Stat(folder.owner())
	return err == nil
}

func describe(i *membership.Invitation, owned bool) Membership {
	return Membership{
		Network: i.Network.Name, ID: i.Network.ID(), Owner: i.Network.Owner.String(), Owned: owned,
		Name: i.Name, Holder: i.Holder.String(), Bound: i.Bound(), Issued: i.Issued, Expires: i.Expires,
	}
}

func keepInvitation(folder networkFolder, i *membership.Invitation) error {
	text, err := i.Text()
	if err != nil {
		return err
	}
	if err := atomicfile.Write(folder.token(), []byte(text+"\n")); err != nil {
		return fmt.Errorf("keep the invitation: %w", err)
	}
	return nil
}

// maxInvitation bounds the file of an invitation, in bytes.
const maxInvitation = 4 << 10

func readInvitation(file string) (*membership.Invitation, error) {
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxInvitation {
		err = fmt.Errorf("%d bytes, too long for an invitation", info.Size())
	}
	if err != nil {
		return nil, fmt.Errorf("token %s: %w", file, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	i, err := membership.ParseInvitation(string(text))
	if err != nil {
		return nil, fmt.Errorf("token %s: %w", file, err)
	}
	return i, nil
}

// tokenFile is where the token of the network that c names is: in Token, or in the
// home of MemberOf. Empty: the network is an open one, since the home has nothing of it. A
// home that has something, but no token, is never taken for one of an open network.
func (c Config) tokenFile() (string, error) {
	if c.Token != "" {
		return c.Token, nil
	}
	if membership.CheckName(c.Network) != nil {
		return "", nil
	}
	folder := home(cmp.Or(c.MemberOf, c.Home)).network(c.Network)
	if _, err := os.Stat(string(folder)); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", nil
	}
	if _, err := os.Stat(folder.token()); err != nil {
		return "", fmt.Errorf("network %s is a private one, but its token cannot be used: %w; take an invitation with p2pboot network join, or remove %s for an open network of that name",
			c.Network, err, folder)
	}
	return folder.token(), nil
}

// NetworkID is what the network that c names goes by among its peers: more than its name
// if it is a private one. The error says why its token cannot be used.
func (c Config) NetworkID() (string, error) {
	file, err := c.tokenFile()
	if err != nil || file == "" {
		return c.Network, err
	}
	i, err := readInvitation(file)
	if err != nil {
		return "", err
	}
	return i.Network.ID(), nil
}

// OpenWarning warns of a network that was named as private ones are, and which anybody may join,
// since the home has no invitation to a private network of that name. It is empty if Open
// says that this is meant.
func (c Config) OpenWarning() string {
	if file, err := c.tokenFile(); c.Open || c.Network == DefaultConfig().Network || err != nil || file != "" {
		return ""
	}
	return fmt.Sprintf("network %s is open: this home has no invitation to a private network of that name, so anybody may join, run jobs and receive their inputs; --open says that this is meant", c.Network)
}

// startMembership finds out whether the network is a private one, and makes the gate
// that keeps others out.
func (p *Peer) startMembership() error {
	id, err := p2ppeer.IDFromPrivateKey(p.key)
	if err != nil {
		return err
	}
	cfg := membership.Config{Peer: id, Log: p.log}
	p.network = p.cfg.Network
	if p.token, err = p.cfg.tokenFile(); err != nil {
		return err
	}
	if warning := p.cfg.OpenWarning(); warning != "" && p.role == Volunteer {
		p.log.Warn().Msg(warning)
	}
	if p.token != "" {
		if cfg.Invitation, err = readInvitation(p.token); err != nil {
			return err
		}
		private := cfg.Invitation.Network
		if p.cfg.Network != private.Name && p.cfg.Network != DefaultConfig().Network {
			return fmt.Errorf("token %s is of network %s, and --network names %s", p.token, private.Name, p.cfg.Network)
		}
		p.network = private.ID()
		p.log.Info().Str("network", private.ID()).Time("expires", cfg.Invitation.Expires).Msg("member of a private network")
		cfg.Home = p.voucher()
	}
	p.gate, err = membership.NewGate(cfg)
	if err != nil {
		return fmt.Errorf("join private network %s: %w; ask its owner for an invitation", cfg.Invitation.Network.Name, err)
	}
	return nil
}

// ownerOf returns whose a peer is: what the owner of a private network has signed, else what its offer says.
func (p *Peer) ownerOf(id p2ppeer.ID, o discovery.Offer) string {
	if p.gate.Open() {
		return o.Owner
	}
	return p.gate.Person(id)
}

// voucher is the key of the home that a submit-only peer belongs to, if it has one.
func (p *Peer) voucher() crypto.PrivKey {
	if p.role == Volunteer {
		return p.key // for hosts that libp2p makes besides
	}
	file := home(p.cfg.MemberOf).identity()
	if _, err := os.Stat(file); p.cfg.MemberOf == "" || err != nil {
		return nil
	}
	key, err := loadIdentity(file)
	if err != nil {
		p.log.Debug().Err(err).Msg("no key to vouch with")
		return nil
	}
	return key
}

// Refused returns why a peer has refused this one, because one of the two is not of a
// private network that the other is of; nil if none has.
func (p *Peer) Refused() error {
	if r := p.gate.Refused(); r != nil {
		return r
	}
	return nil
}

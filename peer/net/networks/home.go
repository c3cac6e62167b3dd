package networks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/net/membership"
	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

// A Membership describes the membership of a home in a private network.
type Membership struct {
	Network string    `json:"network"`
	ID      string    `json:"id"`             // network ID, as used by its members
	Owner   string    `json:"owner"`          // peer ID of the owner's key
	Owned   bool      `json:"owned"`          // the home holds that key
	Name    string    `json:"name,omitempty"` // the person that the owner has invited; may be empty
	Holder  string    `json:"holder"`
	Bound   bool      `json:"bound"` // the token is valid only for Holder, and not for any peer that has it
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"`
}

// A networkFolder is the folder of one private network in a home.
type networkFolder string

func networksOf(home string) string { return filepath.Join(home, "networks") }

func folderOf(home, network string) networkFolder {
	return networkFolder(filepath.Join(networksOf(home), network))
}

func (n networkFolder) token() string { return filepath.Join(string(n), "token") }
func (n networkFolder) owner() string { return filepath.Join(string(n), "owner") }

// Create creates a private network that the home dir owns. The home also gets a token for its peer, which
// expires after lifetime and names person unless that is empty. If an earlier call was interrupted, Create uses
// the owner's key from that call.
func Create(dir, name, person string, lifetime time.Duration) (Membership, error) {
	if err := errors.Join(membership.CheckName(name), membership.CheckPerson(person)); err != nil {
		return Membership{}, err
	}
	id, err := homedir.IDOf(dir)
	if err != nil {
		return Membership{}, err
	}
	folder := folderOf(dir, name)
	if _, err := os.Stat(folder.token()); err == nil {
		return Membership{}, fmt.Errorf("network %s already exists in %s: choose another name", name, folder)
	}
	if err := os.MkdirAll(string(folder), 0o700); err != nil {
		return Membership{}, &homedir.Error{Home: dir, Err: homedir.PlainPathError(err)}
	}
	key, err := homedir.LoadIdentity(folder.owner()) // created, unless an interrupted call has created it
	if err != nil {
		return Membership{}, &homedir.Error{Home: dir, Err: err}
	}
	now := time.Now()
	i, err := membership.Invite(key, name, person, id, now, now.Add(lifetime))
	if err != nil {
		return Membership{}, err
	}
	return describe(i, true), keepInvitation(folder, i)
}

// An Invitee describes the person or peer that is invited to a private network.
type Invitee struct {
	// Name is the network owner's name for the person. All peers with the same name count as peers of one
	// owner. If Name is empty, all peers that this invitation admits count as peers of one owner.
	Name string
	Peer string // ID of the only invited peer; if empty, any peer may use the invitation
}

// Invite returns the text of an invitation to the network with the given name, which the home dir owns. If the
// home owns only one network, name may be empty.
func Invite(dir, name string, invitee Invitee, lifetime time.Duration) (string, error) {
	name, key, err := ownedNetwork(dir, name)
	if err != nil {
		return "", err
	}
	var holder p2ppeer.ID
	if invitee.Peer != "" {
		if holder, err = p2ppeer.Decode(invitee.Peer); err != nil {
			return "", fmt.Errorf("peer %q: not a peer ID; see p2pboot network show", invitee.Peer)
		}
	}
	now := time.Now()
	i, err := membership.Invite(key, name, invitee.Name, holder, now, now.Add(lifetime))
	if err != nil {
		return "", err
	}
	return i.Text()
}

// ownedNetwork returns the name and the key of the network that the home dir owns. If dir owns only one network,
// name may be empty.
func ownedNetwork(dir, name string) (string, crypto.PrivKey, error) {
	all, err := Of(dir)
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
		return "", nil, fmt.Errorf("home %s does not own network %s: only the home that created it can invite", dir, name)
	case len(owned) == 0:
		return "", nil, fmt.Errorf("home %s owns no network: create one with p2pboot network create NAME", dir)
	default:
		return "", nil, fmt.Errorf("home %s owns several networks: choose one with --network (%s)", dir, strings.Join(owned, ", "))
	}
	key, err := homedir.LoadIdentity(folderOf(dir, owned[0]).owner())
	if err != nil {
		return "", nil, &homedir.Error{Home: dir, Err: err}
	}
	return owned[0], key, nil
}

// IsSecret reports whether the invitation in text is valid for any peer that has it.
func IsSecret(text string) bool {
	i, err := membership.ParseInvitation(text)
	return err == nil && !i.Bound()
}

// Join stores the invitation in text in the home dir, unless the home has one that expires later. It returns
// the resulting membership. A peer that runs on the home and is a member uses the new invitation within seconds.
func Join(dir, text string) (Membership, error) {
	i, err := membership.ParseInvitation(text)
	if err != nil {
		return Membership{}, err
	}
	if !time.Now().Before(i.Expires) {
		return Membership{}, fmt.Errorf("the invitation to network %s has expired on %s: ask its owner for a new one", i.Network.Name, i.Expires.Format(time.DateTime))
	}
	id, err := homedir.IDOf(dir)
	if err != nil {
		return Membership{}, err
	}
	if i.Bound() && i.Holder != id {
		return Membership{}, &membership.BoundError{To: i.Holder, Peer: id}
	}
	folder := folderOf(dir, i.Network.Name)
	old, err := readInvitation(folder.token())
	if err == nil && old.Network.Owner != i.Network.Owner {
		return Membership{}, fmt.Errorf("home %s belongs to the network %s of another owner: to leave that network, remove %s first", dir, i.Network.Name, folder)
	}
	if err == nil && old.Expires.After(i.Expires) && (!old.Bound() || old.Holder == id) {
		return describe(old, owns(folder)), nil // the home's invitation is better
	}
	if err := os.MkdirAll(string(folder), 0o700); err != nil {
		return Membership{}, &homedir.Error{Home: dir, Err: homedir.PlainPathError(err)}
	}
	return describe(i, owns(folder)), keepInvitation(folder, i)
}

// Of returns the private networks of the home dir, sorted by name.
func Of(dir string) ([]Membership, error) {
	entries, err := os.ReadDir(networksOf(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &homedir.Error{Home: dir, Err: homedir.PlainPathError(err)}
	}
	var out []Membership
	for _, e := range entries {
		folder := folderOf(dir, e.Name())
		i, err := readInvitation(folder.token())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, &homedir.Error{Home: dir, Err: err}
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

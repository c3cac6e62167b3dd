package membership

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"strings"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A Network is a private network. Its owner's key belongs to what it is: two
// networks of one name and different owners have nothing to do with each other.
type Network struct {
	Name  string
	Owner p2ppeer.ID // says the owner's public key
}

// ID is what the network goes by among its members: its name and the beginning
// of a digest of its owner's key. No open network's name is mistaken for it,
// because members admit nobody without a token.
func (n Network) ID() string {
	sum := sha256.Sum256([]byte(n.Owner))
	return n.Name + "+" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:idBytes]))
}

const idBytes = 10 // 16 letters

// name is what discovery allows as a network's name, less what ID adds.
var name = regexp.MustCompile(`^[A-Za-z0-9._+-]{1,47}$`)

// CheckPerson refuses what is not the name of a person, and not left out. A peer ID is not one: it would be
// that of a token which names nobody.
func CheckPerson(n string) error {
	if n == "" {
		return nil
	}
	if _, err := p2ppeer.Decode(n); err == nil || !name.MatchString(n) {
		return fmt.Errorf("name %.80q of who is invited: want 1 to 47 letters, digits or . _ - +, and no peer ID", n)
	}
	return nil
}

// CheckName refuses names that no private network can have. It is the name of a folder
// as well.
func CheckName(n string) error {
	if !name.MatchString(n) || strings.Trim(n, ".") == "" {
		return fmt.Errorf("network %.80q: want 1 to 47 letters, digits or . _ - +", n)
	}
	return nil
}

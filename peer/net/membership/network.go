package membership

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"strings"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A Network is a private network. The owner's key is part of its identity: networks with the same name and
// different owners are unrelated.
type Network struct {
	Name  string
	Owner p2ppeer.ID // identifies the owner's public key
}

// ID returns the identifier that the network's members use: the name and a prefix of a digest of the owner's
// key. An open network with the same identifier is harmless, because members admit only peers with a token.
func (n Network) ID() string {
	sum := sha256.Sum256([]byte(n.Owner))
	return n.Name + "+" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:idBytes]))
}

const idBytes = 10 // 16 letters in base32

// name matches the names of networks that discovery accepts, shortened by the length that ID adds.
var name = regexp.MustCompile(`^[A-Za-z0-9._+-]{1,47}$`)

// CheckPerson returns an error if n is neither empty nor a valid name of a person. A peer ID is not valid: it is
// the person of a token without a name.
func CheckPerson(n string) error {
	if n == "" {
		return nil
	}
	if _, err := p2ppeer.Decode(n); err == nil || !name.MatchString(n) {
		return fmt.Errorf("name %.80q: want 1 to 47 letters, digits or . _ - +, and no peer ID", n)
	}
	return nil
}

// CheckName returns an error if a private network must not have the name n, which is also the name of a folder.
func CheckName(n string) error {
	if !name.MatchString(n) || strings.Trim(n, ".") == "" {
		return fmt.Errorf("network %.80q: want 1 to 47 letters, digits or . _ - +", n)
	}
	return nil
}

package homedir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
)

// NewIdentity generates the private key of a peer.
func NewIdentity() (crypto.PrivKey, error) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate identity: %w", err)
	}
	return key, nil
}

// LoadIdentity returns the key in file. It creates the file the first time.
func LoadIdentity(file string) (crypto.PrivKey, error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return createIdentity(file)
	}
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("identity %s is readable by other users (mode %#o): use chmod 600, or remove the file to create a new identity", file, mode)
	}
	encoded, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	key, err := crypto.UnmarshalPrivateKey(encoded)
	if err != nil {
		return nil, fmt.Errorf("identity %s contains no private key: restore it, or remove the file to create a new identity", file)
	}
	if key.Type() != crypto.Ed25519 {
		return nil, fmt.Errorf("identity %s holds a key of type %v, want Ed25519", file, key.Type())
	}
	return key, nil
}

// createIdentity generates a key and writes it to file atomically, so that a crash leaves no partial key.
func createIdentity(file string) (crypto.PrivKey, error) {
	key, err := NewIdentity()
	if err != nil {
		return nil, err
	}
	encoded, err := crypto.MarshalPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode identity: %w", err)
	}
	if err := atomicfile.Write(file, encoded); err != nil {
		return nil, fmt.Errorf("keep identity: %w", err)
	}
	return key, nil
}

// IDOf returns the ID of the peer whose home is dir. If the home has no identity yet, IDOf creates it.
func IDOf(dir string) (p2ppeer.ID, error) {
	h, err := Open(dir)
	if err != nil {
		return "", err
	}
	key, err := LoadIdentity(h.Identity())
	if err != nil {
		return "", &Error{string(h), err}
	}
	return p2ppeer.IDFromPrivateKey(key)
}

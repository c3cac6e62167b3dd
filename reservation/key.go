package reservation

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
)

// A Key is a reservation key: what a peer hands out for the slots that it
// holds. It cannot be guessed, and is worth something only to the submitter
// that got it.
type Key [16]byte

// newKey draws a key.
func newKey() Key {
	var k Key
	rand.Read(k[:]) // never fails: see crypto/rand
	return k
}

// String writes k in hexadecimal.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// ParseKey reads what String writes.
func ParseKey(s string) (Key, error) {
	b, err := hex.DecodeString(s)
	if err != nil {
		return Key{}, fmt.Errorf("reservation key: %w", err)
	}
	return keyFromBytes(b)
}

func keyFromBytes(b []byte) (Key, error) {
	if len(b) != len(Key{}) {
		return Key{}, fmt.Errorf("reservation key: %d bytes, want %d", len(b), len(Key{}))
	}
	return Key(b), nil
}

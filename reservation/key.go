package reservation

import (
	"crypto/rand"
	"fmt"
)

// A Key is a reservation key, which a peer issues for the slots that it holds. It cannot be guessed, and
// is valid only for the submitter that received it.
type Key [16]byte

func newKey() Key {
	var k Key
	rand.Read(k[:]) // never fails: see crypto/rand
	return k
}

func keyFromBytes(b []byte) (Key, error) {
	if len(b) != len(Key{}) {
		return Key{}, fmt.Errorf("reservation key: %d bytes, want %d", len(b), len(Key{}))
	}
	return Key(b), nil
}

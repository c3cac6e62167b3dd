package sealed

import (
	"crypto/rand"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// A note is a record.
type note struct{ kind, text string }

func (n *note) Kind() string                   { return n.kind }
func (n *note) MarshalRecord() ([]byte, error) { return []byte(n.text), nil }
func (n *note) UnmarshalRecord(b []byte) error { n.text = string(b); return nil }

func TestOpen(t *testing.T) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := p2ppeer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := Seal(&note{"a", "text"}, key)
	if err != nil {
		t.Fatal(err)
	}
	got := note{kind: "a"}
	if by, err := Open(envelope, len(envelope), &got); err != nil || by != signer || got.text != "text" {
		t.Errorf("got %q, signed by %s, %v; want the text, signed by %s", got.text, by, err, signer)
	}
	if _, err := Open(envelope, len(envelope)-1, &note{kind: "a"}); err == nil {
		t.Error("an envelope above the limit was opened")
	}
	if _, err := Open(envelope, len(envelope), &note{kind: "b"}); err == nil {
		t.Error("another kind of record was accepted")
	}
	envelope[len(envelope)-1] ^= 1
	if _, err := Open(envelope, len(envelope), &note{kind: "a"}); err == nil {
		t.Error("a changed envelope was accepted")
	}
	if _, err := Open(nil, len(envelope), &note{kind: "a"}); err == nil {
		t.Error("an empty envelope was accepted")
	}
	if _, err := Seal(&note{}, nil); err == nil {
		t.Error("a record was signed without a key")
	}
}

func FuzzOpen(f *testing.F) {
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	envelope, err := Seal(&note{"a", "text"}, key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(nil))
	f.Add(envelope)
	f.Fuzz(func(t *testing.T, data []byte) {
		if signer, err := Open(data, 1<<10, &note{kind: "a"}); err == nil && signer.Validate() != nil {
			t.Errorf("a record of the invalid signer %q was accepted", signer)
		}
	})
}

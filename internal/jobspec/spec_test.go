package jobspec

import (
	"bytes"
	"crypto/rand"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/version"
)

// newSpec returns a valid job and its signing key.
func newSpec(t testing.TB) (*Spec, crypto.PrivKey) {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := p2ppeer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	digest := strings.Repeat("0a", 32)
	return &Spec{
		ID: strings.Repeat("1f", 16), Submitter: id, Protocol: version.Protocol,
		Created: time.Unix(1, 0).UTC(), N: 3, R: 2, Name: "ep", Args: []string{"W"}, Settings: []string{"P2PMPI_CHECK=1"},
		Programs: []Program{{OS: "linux", Arch: "amd64", Digest: digest, Size: 1}},
		Inputs:   digest,
	}, key
}

func TestT1SignedSpecRoundTrips(t *testing.T) {
	s, key := newSpec(t)
	envelope, err := s.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Verify(envelope)
	if err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("got %+v, %v; want %+v", got, err, s)
	}
}

func TestT1ChangedSpecIsRefused(t *testing.T) {
	s, key := newSpec(t)
	envelope, _ := s.Sign(key)
	changed := bytes.Replace(envelope, []byte(`"n":3`), []byte(`"n":9`), 1)
	if bytes.Equal(changed, envelope) {
		t.Fatal("the test changed no byte")
	}
	if _, err := Verify(changed); err == nil {
		t.Error("a changed job was accepted")
	}
	_, other := newSpec(t)
	forged, err := s.Sign(other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(forged); err == nil {
		t.Error("a job signed by another key was accepted")
	}
}

func TestValidate(t *testing.T) {
	breaks := map[string]func(*Spec){
		"id":       func(s *Spec) { s.ID = "../x" },
		"protocol": func(s *Spec) { s.Protocol++ },
		"n":        func(s *Spec) { s.N = 0 },
		"r":        func(s *Spec) { s.R = -1 },
		"n*r":      func(s *Spec) { s.N, s.R = 1<<40, 1<<40 },
		"programs": func(s *Spec) { s.Programs = nil },
		"digest":   func(s *Spec) { s.Programs[0].Digest = "zz" },
		"inputs":   func(s *Spec) { s.Inputs = "" },
		"name":     func(s *Spec) { s.Name = "" },
	}
	for name, damage := range breaks {
		s, _ := newSpec(t)
		damage(s)
		if s.validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzVerify(f *testing.F) {
	s, key := newSpec(f)
	envelope, err := s.Sign(key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(envelope)
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := Verify(b); err == nil && s.validate() != nil {
			t.Errorf("an invalid job was accepted: %+v", s)
		}
	})
}

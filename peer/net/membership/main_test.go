package membership

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// epoch is the start time in the tests of pure functions.
var epoch = time.Unix(1_000_000, 0)

func newKey(t testing.TB) (crypto.PrivKey, p2ppeer.ID) {
	t.Helper()
	key, _, err := crypto.GenerateEd25519Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := p2ppeer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, id
}

func invite(t testing.TB, owner crypto.PrivKey, name string, holder p2ppeer.ID, expires time.Time) *Invitation {
	t.Helper()
	return invitePerson(t, owner, name, "", holder, expires)
}

func invitePerson(t testing.TB, owner crypto.PrivKey, name, person string, holder p2ppeer.ID, expires time.Time) *Invitation {
	t.Helper()
	i, err := Invite(owner, name, person, holder, epoch, expires)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

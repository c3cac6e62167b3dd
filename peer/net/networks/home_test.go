package networks

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

func TestNetworkSecretsAreReadableByTheOwnerOnly(t *testing.T) {
	dir := shortDir(t)
	if _, err := Create(dir, "lab", "", time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"owner", "token"} {
		info, err := os.Stat(filepath.Join(dir, "networks", "lab", file))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v, %v; want mode 0600", file, info.Mode(), err)
		}
	}
	if _, err := Create(dir, "lab", "", time.Hour); err == nil {
		t.Error("an existing network was created again")
	}
}

func TestJoinNetworkInvitations(t *testing.T) {
	owner, home := shortDir(t), shortDir(t)
	made, err := Create(owner, "lab", "", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	id, err := homedir.IDOf(home)
	if err != nil {
		t.Fatal(err)
	}
	invited := func(from, peer string, lifetime time.Duration) string {
		t.Helper()
		text, err := Invite(from, "", Invitee{Peer: peer}, lifetime)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	refused := map[string]string{
		"bound to peer":      invited(owner, made.Holder, time.Hour),
		"expired":            invited(owner, id.String(), time.Nanosecond),
		"not an invitation":  "p2pmpi2.abc",
		"was cut or changed": invited(owner, id.String(), time.Hour)[:40],
	}
	if _, err := Join(home, invited(owner, id.String(), time.Hour)); err != nil {
		t.Fatal(err)
	}
	stranger := shortDir(t)
	if _, err := Create(stranger, "lab", "", time.Hour); err != nil {
		t.Fatal(err)
	}
	refused["of another owner"] = invited(stranger, "", time.Hour)
	for want, text := range refused {
		if _, err := Join(home, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	later, err := Join(home, invited(owner, "", 2*time.Hour))
	if err != nil || later.Owned || later.Bound || later.Owner != made.Owner {
		t.Errorf("got %+v, %v; want the invitation that expires later", later, err)
	}
	if kept, err := Join(home, invited(owner, "", time.Hour)); err != nil || kept != later {
		t.Errorf("got %+v, %v; want to keep the invitation that expires later", kept, err)
	}
	if got, err := Of(home); err != nil || len(got) != 1 || got[0] != later {
		t.Errorf("got %+v, %v; want %+v", got, err, later)
	}
	if _, err := Invite(home, "", Invitee{}, time.Hour); err == nil || !strings.Contains(err.Error(), "owns no network") {
		t.Errorf("a home that owns no network: got %v, want an error that says so", err)
	}
}

func TestInvalidNameCreatesNoNetwork(t *testing.T) {
	dir := shortDir(t)
	if m, err := Create(dir, "lab", "not a name", time.Hour); err == nil {
		t.Errorf("a network with an invalid name was created: %+v", m)
	}
	if _, err := os.Stat(string(folderOf(dir, "lab"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want no folder", err)
	}
}

// shortDir returns a home whose path is short enough for a socket, independent of the test's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "networks")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

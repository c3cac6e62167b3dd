package peer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
)

func TestNetworkSecretsAreReadableByTheOwnerOnly(t *testing.T) {
	dir := shortDir(t)
	if _, err := CreateNetwork(dir, "lab", "", time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"owner", "token"} {
		info, err := os.Stat(filepath.Join(dir, "networks", "lab", file))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got %v, %v; want mode 0600", file, info.Mode(), err)
		}
	}
	if _, err := CreateNetwork(dir, "lab", "", time.Hour); err == nil {
		t.Error("a network was made again, and its key is gone")
	}
}

// TestHomeWithoutItsTokenIsRefused also creates the network again with the remaining key.
func TestHomeWithoutItsTokenIsRefused(t *testing.T) {
	dir := shortDir(t)
	made, err := CreateNetwork(dir, "lab", "", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "networks", "lab", "token")); err != nil {
		t.Fatal(err)
	}
	cfg := LocalConfig()
	cfg.Home, cfg.Network = dir, "lab"
	if p, err := New(t.Context(), cfg, Volunteer, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "is private") {
		if p != nil {
			p.Close()
		}
		t.Errorf("got %v, want it refused", err)
	}
	again, err := CreateNetwork(dir, "lab", "", time.Hour)
	if err != nil || again.Owner != made.Owner {
		t.Errorf("got %+v, %v; want a network of the same owner", again, err)
	}
	cfg.Network = "office"
	if got, err := cfg.NetworkID(); err != nil || got != "office" {
		t.Errorf("got %q, %v; want an open network", got, err)
	}
}

func TestJoinNetworkInvitations(t *testing.T) {
	owner, home := shortDir(t), shortDir(t)
	made, err := CreateNetwork(owner, "lab", "", time.Hour)
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
	if _, err := JoinNetwork(home, invited(owner, id.String(), time.Hour)); err != nil {
		t.Fatal(err)
	}
	stranger := shortDir(t)
	if _, err := CreateNetwork(stranger, "lab", "", time.Hour); err != nil {
		t.Fatal(err)
	}
	refused["of another owner"] = invited(stranger, "", time.Hour)
	for want, text := range refused {
		if _, err := JoinNetwork(home, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	later, err := JoinNetwork(home, invited(owner, "", 2*time.Hour))
	if err != nil || later.Owned || later.Bound || later.Owner != made.Owner {
		t.Errorf("got %+v, %v; want a later one taken", later, err)
	}
	if kept, err := JoinNetwork(home, invited(owner, "", time.Hour)); err != nil || kept != later {
		t.Errorf("got %+v, %v; want the one kept that expires later", kept, err)
	}
	if got, err := Memberships(home); err != nil || len(got) != 1 || got[0] != later {
		t.Errorf("got %+v, %v; want %+v", got, err, later)
	}
	if _, err := Invite(home, "", Invitee{}, time.Hour); err == nil || !strings.Contains(err.Error(), "owns no network") {
		t.Errorf("one who does not own it invites: %v", err)
	}
}

// TestSubmittersOfAHomeAreMembers checks that another identity of the same home is also a member, and that
// one of another home is not.
func TestSubmittersOfAHomeAreMembers(t *testing.T) {
	dir := shortDir(t)
	if _, err := CreateNetwork(dir, "lab", "", time.Hour); err != nil {
		t.Fatal(err)
	}
	member := boot(t, func(c *Config) { c.Home, c.Network = dir, "lab" })
	if got := member.Status(t.Context()).Network; !strings.HasPrefix(got, "lab+") {
		t.Errorf("it is of network %q, want a private one", got)
	}
	submit := func(change func(*Config)) *Peer {
		t.Helper()
		cfg := LocalConfig()
		cfg.Home, cfg.Network, cfg.Supernodes = shortDir(t), "lab", introducing(member)
		change(&cfg)
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		p, err := New(ctx, cfg, SubmitOnly, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		return p
	}
	ours := submit(func(c *Config) { c.MemberOf = dir })
	if err := ours.Unmet(); err != nil || ours.Refused() != nil {
		t.Errorf("not introduced: %v; %v", err, ours.Refused())
	}
	theirs := submit(func(*Config) {})
	if theirs.Unmet() == nil || theirs.Refused() == nil || !strings.Contains(theirs.Refused().Error(), "no token") {
		t.Errorf("got %v, %v; want it refused", theirs.Unmet(), theirs.Refused())
	}
	copied := LocalConfig()
	copied.Home, copied.Network = shortDir(t), "lab"
	copied.Token = filepath.Join(dir, "networks", "lab", "token")
	if _, err := New(t.Context(), copied, SubmitOnly, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "bound to peer") {
		t.Errorf("got %v; want a token refused that is another's", err)
	}
}

func TestInvalidNameCreatesNoNetwork(t *testing.T) {
	dir := t.TempDir()
	if m, err := CreateNetwork(dir, "lab", "not a name", time.Hour); err == nil {
		t.Errorf("made %+v", m)
	}
	if _, err := os.Stat(string(folderOf(dir, "lab"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want no folder", err)
	}
}

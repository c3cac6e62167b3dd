package peer

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/peer/net/networks"
)

// TestHomeWithoutItsTokenIsRefused checks that a home without its token is refused, and that the network can be
// created again with the remaining key.
func TestHomeWithoutItsTokenIsRefused(t *testing.T) {
	dir := shortDir(t)
	made, err := networks.Create(dir, "lab", "", time.Hour)
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
		t.Errorf("got %v, want the home refused", err)
	}
	again, err := networks.Create(dir, "lab", "", time.Hour)
	if err != nil || again.Owner != made.Owner {
		t.Errorf("got %+v, %v; want a network of the same owner", again, err)
	}
	cfg.Network = "office"
	if got, err := cfg.NetworkChoice().ID(); err != nil || got != "office" {
		t.Errorf("got %q, %v; want an open network", got, err)
	}
}

// TestSubmittersOfAHomeAreMembers checks that another identity of the same home is also a member, and that an
// identity of another home is not.
func TestSubmittersOfAHomeAreMembers(t *testing.T) {
	dir := shortDir(t)
	if _, err := networks.Create(dir, "lab", "", time.Hour); err != nil {
		t.Fatal(err)
	}
	member := boot(t, func(c *Config) { c.Home, c.Network = dir, "lab" })
	if got := member.Status(t.Context()).Network; !strings.HasPrefix(got, "lab+") {
		t.Errorf("got network %q, want a private one", got)
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
		t.Errorf("the peer was not introduced: %v; %v", err, ours.Refused())
	}
	theirs := submit(func(*Config) {})
	if theirs.Unmet() == nil || theirs.Refused() == nil || !strings.Contains(theirs.Refused().Error(), "no token") {
		t.Errorf("got %v, %v; want the peer refused", theirs.Unmet(), theirs.Refused())
	}
	copied := LocalConfig()
	copied.Home, copied.Network = shortDir(t), "lab"
	copied.Token = filepath.Join(dir, "networks", "lab", "token")
	if _, err := New(t.Context(), copied, SubmitOnly, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "bound to peer") {
		t.Errorf("got %v; want the token of another peer refused", err)
	}
}

package peer

import (
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/skip"
)

// TestDiagnosePeer examines a peer with a supernode, and a home without a peer.
func TestDiagnosePeer(t *testing.T) {
	skip.Long(t)
	super := boot(t, nil)
	p := boot(t, func(c *Config) { c.Supernodes = append(introducing(super), absentPeer) })
	s, err := Examine(t.Context(), p.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if s.Network == nil || s.Network.Supernodes != 2 || s.Network.Met != 1 || len(s.Network.Ahead) != 1 || s.Network.Doubted != 0 {
		t.Errorf("got %+v, want one of two supernodes connected, and its clock compared", s.Network)
	}
	if s.Machine.CacheLimit != p.cfg.CacheLimit<<20 || s.Machine.Memory == 0 {
		t.Errorf("the facts about the machine are %+v", s.Machine)
	}

	idle := p.cfg
	idle.Home = shortDir(t)
	idle.Listen = p.net.Host.Network().ListenAddresses()[:1]
	if s, err = Examine(t.Context(), idle); err != nil || s.Network != nil || s.Home != "" || !strings.Contains(s.Ports, "in use") {
		t.Errorf("got %+v, %v; want the port taken", s, err)
	}
}

package peer

import "testing"

// TestPeersReconnectWithoutSupernode restarts two peers after the supernode that has introduced them has
// ended.
func TestPeersReconnectWithoutSupernode(t *testing.T) {
	supernode := boot(t, nil)
	homes := []string{shortDir(t), shortDir(t)}
	var peers []*Peer
	for _, home := range homes {
		peers = append(peers, boot(t, func(c *Config) { c.Home, c.Supernodes = home, introducing(supernode) }))
	}
	for _, p := range append(peers, supernode) {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	first := boot(t, func(c *Config) { c.Home = homes[0] })
	second := boot(t, func(c *Config) { c.Home = homes[1] })
	if err := second.Unmet(); err != nil {
		t.Fatal(err)
	}
	if n := len(second.net.Host.Network().ConnsToPeer(first.ID())); n == 0 {
		t.Error("the peer is not connected to the supernode")
	}
}

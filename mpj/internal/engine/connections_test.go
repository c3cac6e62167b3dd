package engine

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// TestGrowKeepsChannelsOfProcesses checks that a view with more replicas moves no channel to another
// process.
func TestGrowKeepsChannelsOfProcesses(t *testing.T) {
	c := connections{replicas: 2, outlets: make([]*Outlet, 6), inlets: make([]*inlet, 6)}
	for _, p := range view.New(3, 2).Processes() {
		c.outlets[c.index(p)], c.inlets[c.index(p)] = &Outlet{to: p}, &inlet{from: p}
	}
	c.grow(view.New(3, 4))
	for _, p := range view.New(3, 4).Processes() {
		o, in := c.outlets[c.index(p)], c.inlets[c.index(p)]
		if old := p.Replica < 2; (o != nil) != old || old && (o.to != p || in.from != p) {
			t.Errorf("process %v has outlet %v and inlet %v", p, o, in)
		}
	}
}

package launch

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/launch/confine/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

// TestUnheldReportsInexactDiskLimit checks that Unheld reports an inexact disk limit, if one is set.
func TestUnheldReportsInexactDiskLimit(t *testing.T) {
	s := &Service{groups: &cgroup.Tree{}, retains: true}
	if got := s.Unheld(); len(got) != 0 {
		t.Errorf("it is not set, and got %v", got)
	}
	for name, got := range map[string][]Unheld{
		"to a class": s.Unheld(limits.Limits{Disk: 1 << 30}),
		"to all":     (&Service{groups: s.groups, retains: true, config: Config{Grant: limits.Grant{Job: limits.Limits{Disk: 1}}}}).Unheld(),
	} {
		if len(got) != 1 || got[0].Limit != limits.Disk {
			t.Errorf("granted %s: got %v", name, got)
		}
	}
}

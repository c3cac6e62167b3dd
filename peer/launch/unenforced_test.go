package launch

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/launch/confine/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

// TestUnenforcedReportsInexactDiskLimit checks that Unenforced reports an inexact disk limit, if one is set.
func TestUnenforcedReportsInexactDiskLimit(t *testing.T) {
	s := &Service{groups: &cgroup.Tree{}, retains: true}
	if got := s.Unenforced(); len(got) != 0 {
		t.Errorf("without a disk limit: got %v", got)
	}
	for name, got := range map[string][]Unenforced{
		"to a class": s.Unenforced(limits.Limits{Disk: 1 << 30}),
		"to all":     (&Service{groups: s.groups, retains: true, config: Config{Grant: limits.Grant{Job: limits.Limits{Disk: 1}}}}).Unenforced(),
	} {
		if len(got) != 1 || got[0].Limit != limits.Disk {
			t.Errorf("granted %s: got %v", name, got)
		}
	}
}

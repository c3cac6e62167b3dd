package launch

import (
	"slices"

	"github.com/p2pmpi/p2pmpi/peer/launch/confine/cgroup"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

// Unenforced is a granted limit that this machine's kernel does not enforce.
type Unenforced struct {
	Limit   limits.Kind `json:"limit"`
	Why     string      `json:"why"`
	Instead string      `json:"instead"` // substitute measure
}

// Unenforced returns the limits that the kernel does not enforce, among those granted to all jobs or to one
// of the given classes.
func (s *Service) Unenforced(classes ...limits.Limits) []Unenforced {
	out := []Unenforced{} // so that JSON has a list even if it is empty
	granted := func(kind limits.Kind) bool {
		g := s.Grant()
		return g.Slot.Of(kind)+g.Job.Of(kind) > 0 ||
			slices.ContainsFunc(classes, func(l limits.Limits) bool { return l.Of(kind) > 0 })
	}
	for _, u := range []struct {
		kind       limits.Kind
		controller cgroup.Controller
		instead    string
	}{
		{limits.Memory, cgroup.Memory, "memory is measured every " + memoryEvery.String() + "; a program can hide some of it (docs/security.md, Limits)"},
		{limits.CPU, cgroup.CPU, "programs have a low priority"},
		{limits.Processes, cgroup.Pids, "processes are counted every " + countEvery.String()},
	} {
		if why := s.groups.Missing(u.controller); why != nil && granted(u.kind) {
			out = append(out, Unenforced{u.kind, why.Error(), u.instead})
		}
	}
	if s.retains && granted(limits.Disk) {
		out = append(out, Unenforced{limits.Disk, "btrfs can keep deleted data allocated (docs/security.md, Limits)", "only the data of existing files is measured"})
	}
	return out
}

// Grant returns the resource limits of new jobs.
func (s *Service) Grant() limits.Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config.Grant
}

// SetGrant sets the resource limits of jobs that come from now on. Current jobs keep theirs.
func (s *Service) SetGrant(g limits.Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config.Grant = g
}

package launch

import (
	"slices"

	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/cgroup"
)

// Unheld is a limit that this machine's kernel does not hold programs to.
type Unheld struct {
	Limit   limits.Kind `json:"limit"`
	Why     string      `json:"why"`
	Instead string      `json:"instead"` // what is done
}

// Unheld returns the limits that are granted here, to everybody or to one of some classes, and that the
// kernel does not hold.
func (s *Service) Unheld(classes ...limits.Limits) []Unheld {
	out := []Unheld{} // a list in JSON even when it is empty
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
		{limits.Memory, cgroup.Memory, "what programs have is looked at every " + memoryEvery.String() + "; some of it can be hidden (docs/security.md, Limits)"},
		{limits.CPU, cgroup.CPU, "programs have a low priority"},
		{limits.Processes, cgroup.Pids, "processes are counted every " + countEvery.String()},
	} {
		if why := s.groups.Missing(u.controller); why != nil && granted(u.kind) {
			out = append(out, Unheld{u.kind, why.Error(), u.instead})
		}
	}
	if s.retains && granted(limits.Disk) {
		out = append(out, Unheld{limits.Disk, "btrfs keeps what files no longer hold (docs/security.md, Limits)", "what files hold is measured"})
	}
	return out
}

// Grant returns what a job may have here.
func (s *Service) Grant() limits.Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config.Grant
}

// SetGrant says what jobs may have that come from now on. Those that are here keep what they have.
func (s *Service) SetGrant(g limits.Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config.Grant = g
}

package status

import (
	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
	"github.com/p2pmpi/p2pmpi/peer/owner/presence"
)

// Granted describes the limits of jobs on this machine.
type Granted struct {
	limits.Grant
	Terms      []policy.Terms      `json:"terms"`  // terms of each class of submitters
	Unenforced []launch.Unenforced `json:"unheld"` // limits that the kernel does not enforce
}

// Unprotected is a resource of this machine that the sandbox does not protect from native programs.
type Unprotected struct {
	Resource string `json:"wall"` // file system, network or processes
	Why      string `json:"why"`
}

// UnprotectedBy returns the resources that the available sandbox layers do not protect.
func UnprotectedBy(sandbox launch.Sandbox) []Unprotected {
	out := []Unprotected{} // a list in JSON even when empty
	for _, gap := range sandbox.Gaps() {
		out = append(out, Unprotected{string(gap.Resource), gap.Why})
	}
	return out
}

// Unread is a suspend rule that cannot be evaluated on this machine.
type Unread = presence.Unread

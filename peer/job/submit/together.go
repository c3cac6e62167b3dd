package submit

import (
	"errors"
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// Processes share memory only within one peer. So a job that allows only shared-memory channels
// runs on one peer, or is refused before it gets slots.

// together reports whether all processes of r have to run on one peer.
func (r Request) together() bool {
	return r.N > 1 && slices.Equal(r.Channels, []string{string(proclink.Shm)})
}

// onePeer returns the one candidate to ask for all n slots. Each turn selects another one, those
// with n free slots first. It returns none if no candidate has n slots.
func onePeer(candidates []reservation.Candidate, n, turn int) []reservation.Candidate {
	var free, later []reservation.Candidate
	for _, c := range candidates {
		switch {
		case c.Slots >= n:
			free = append(free, c)
		case c.Total >= n:
			later = append(later, c)
		}
	}
	all := append(free, later...)
	if len(all) == 0 {
		return nil
	}
	i := turn % len(all)
	return all[i : i+1]
}

// errApart reports that no candidate has enough slots for a job that must run on one peer.
var errApart = errors.New("no peer has room for all processes")

// refuseApart returns the result of a job for which no peer has enough slots.
func refuseApart(n int) *job.Result {
	return &job.Result{
		Status:  job.StatusShortage,
		Message: fmt.Sprintf("no peer has the %d slots needed: with --channels shm all processes run on one peer", n),
		Hint:    "allow other channels (--channels shm,tcp,stream), or lower -n",
	}
}

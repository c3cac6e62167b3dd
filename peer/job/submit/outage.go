package submit

import (
	"fmt"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// A job without replicas ends when it gives up one peer, so failing a silent peer early gains
// nothing. Unless the user has set --tolerated-hang, such a job waits for a silent peer for as long
// as it has run so far, within these bounds. Its peers wait for the submitter for maxOutage.
const (
	minOutage = 30 * time.Second
	maxOutage = 10 * time.Minute
)

// unreachableAfter is how long the fault detector suspects a peer before the user is told. After a
// cut, the submitter suspects each peer some rounds later, when the peer's next table is missing.
// By the end of unreachableAfter it suspects all peers that are cut off.
const unreachableAfter = 3 * time.Second

// outageTimeout returns how long a job that has run for a given time waits for a silent peer.
func outageTimeout(ran time.Duration) time.Duration {
	return min(max(ran, minOutage), maxOutage)
}

// A contact is the name of a peer other than the submitter's, and how long the fault detector has
// suspected it, or 0.
type contact struct {
	peer   string
	silent time.Duration
}

// longest returns the index of the contact that has been silent for longest.
func longest(cs []contact) int {
	at := 0
	for i, c := range cs {
		if c.silent > cs[at].silent {
			at = i
		}
	}
	return at
}

// blame names the machine that is cut off, as far as known: this one if none of several peers is
// reachable, otherwise the suspected peers.
func blame(cs []contact) string {
	var silent []string
	for _, c := range cs {
		if c.silent > 0 {
			silent = append(silent, c.peer)
		}
	}
	switch {
	case len(cs) == 1:
		return fmt.Sprintf("the job's only peer %s: that machine or this one is cut off", cs[0].peer)
	case len(silent) == len(cs):
		return "any of the job's peers: this machine is cut off"
	}
	return fmt.Sprintf("peer %s: stopped or cut off", strings.Join(silent, ", "))
}

// An outage is an assessment of the contacts of a job without replicas: which one to give up, and the message to
// the user.
type outage struct {
	note   string // message to the user, or empty
	lost   int    // index of the contact to give up; -1: none
	warned bool   // the user knows that peers are out of reach
}

// judgeOutage judges the contacts of a job that has run for a given time.
func judgeOutage(cs []contact, ran time.Duration, warned bool) outage {
	o := outage{lost: -1, warned: warned}
	if len(cs) == 0 {
		return o
	}
	at := longest(cs)
	timeout := outageTimeout(ran)
	switch o.warned = cs[at].silent >= unreachableAfter; {
	case o.warned && !warned:
		o.note = fmt.Sprintf("no message from %s; waiting up to %v", blame(cs), timeout.Round(time.Second))
	case !o.warned && warned:
		o.note = "reconnected to the job's peers"
	}
	if cs[at].silent >= timeout {
		o.lost = at
	}
	return o
}

// outOfReach returns the result of a job without replicas that gives up silent peers.
func outOfReach(cs []contact) job.Result {
	return job.Result{
		Status:  job.StatusLost,
		Message: fmt.Sprintf("no message for %v from %s", cs[longest(cs)].silent.Round(time.Second), blame(cs)),
		Hint:    "check the network of that machine, and start the job again; --tolerated-hang waits longer, and with -r 2 a job survives the loss of a peer",
	}
}

// giveUpSilent gives up the unreachable peers of a job without replicas, which is over.
func giveUpSilent(m *membership) {
	if m.j.req.R > 1 {
		return
	}
	cs, links := m.contacts()
	for i, c := range cs {
		if c.silent >= unreachableAfter {
			links[i].lose(errSilent)
		}
	}
}

package job

import (
	"fmt"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/reliability"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Candidate is a peer that offers slots now.
type Candidate struct {
	Platform
	Slots   int                 `json:"slots"`             // free
	Machine string              `json:"machine,omitempty"` // equal on one machine; empty: unknown, counts as a machine of its own
	History reliability.History `json:"history"`
}

// A Choice is how many replicas a job gets, and why.
type Choice struct {
	Replicas int           `json:"replicas"`
	Ranks    int           `json:"ranks"`
	Peers    int           `json:"peers"`    // that could run it
	Machines int           `json:"machines"` // that these are on
	Fails    float64       `json:"fails"`    // probability that one of these ends within Expect, the mean over their slots
	Expect   time.Duration `json:"expect"`   // of the job's run, in nanoseconds
	Wanted   float64       `json:"wanted"`   // probability that the job succeeds
	Success  float64       `json:"success"`
}

// ChooseReplicas returns the fewest replicas with which a job of n ranks that takes the
// expected time succeeds with the wanted probability on peers like the candidates, of
// which only those of one of the platforms count; all, if there is a module. It is an error when there is
// no such number, or no room for so many.
//
// The mean probability is what counts, since nobody knows yet which peers it will be: for
// replicas placed at random on peers that fail with different probabilities it
// overstates a rank's loss rather than understating it (Maclaurin's inequality), and no
// single peer's word moves it by more than that peer's share of the slots.
func ChooseReplicas(n int, wanted float64, expect time.Duration, platforms []Platform, candidates []Candidate) (Choice, error) {
	c := Choice{Ranks: n, Expect: expect, Wanted: wanted}
	slots := 0
	taken := make(map[string]int) // slots of each machine
	for _, peer := range candidates {
		if !slices.Contains(platforms, peer.Platform) && !slices.Contains(platforms, anywhere) {
			continue
		}
		c.Peers++
		before, known := taken[peer.Machine]
		if peer.Machine == "" || !known {
			before = 0
			c.Machines++
		}
		usable := min(max(peer.Slots, 0), n-before) // two replicas of a rank are never on one machine
		taken[peer.Machine] = before + usable
		slots += usable
		c.Fails += float64(usable) * peer.History.Fails(expect)
	}
	room := min(c.Machines, slots/n, view.MaxProcesses/n)
	if room == 0 {
		return c, fmt.Errorf("-r auto: found %d of the %d slots needed for one replica of each rank (-n %d)", slots, n, n)
	}
	c.Fails /= float64(slots)
	var ok bool
	c.Replicas, ok = reliability.Replicas(n, c.Fails, wanted, room)
	c.Success = 1 - reliability.JobFails(n, c.Replicas, c.Fails)
	if !ok {
		return c, fmt.Errorf("-r auto: %s, and there is room for no more; --success is %v", c.reason(), wanted)
	}
	return c, nil
}

// Event tells the user of the choice.
func (c Choice) Event() Event {
	text := fmt.Sprintf("-r auto: %s (%v wanted)", c.reason(), c.Wanted)
	if c.Replicas > 1 {
		text += fmt.Sprintf("; with one fewer it is %s", probability(1-reliability.JobFails(c.Ranks, c.Replicas-1, c.Fails)))
	}
	return Event{Kind: ReplicasEvent, Time: time.Now(), Choice: &c, Text: text}
}

func (c Choice) reason() string {
	ranks, replicas, peers := "1 rank succeeds", "1 replica", "1 peer"
	if c.Ranks > 1 {
		ranks = fmt.Sprintf("%d ranks succeed", c.Ranks)
	}
	if c.Replicas > 1 {
		replicas = fmt.Sprintf("%d replicas", c.Replicas)
	}
	if c.Peers > 1 {
		peers = fmt.Sprintf("%d peers", c.Peers)
	}
	peers += " found"
	if c.Machines == 1 && c.Peers > 1 {
		peers += " on 1 machine"
	} else if c.Machines < c.Peers {
		peers += fmt.Sprintf(" on %d machines", c.Machines)
	}
	return fmt.Sprintf("with %s each, %s with probability %s, since of %s one fails within %v with probability %.2g, by their own account",
		replicas, ranks, probability(c.Success), peers, c.Expect, c.Fails)
}

// probability writes one with as many digits as it takes to tell it from 1.
func probability(p float64) string {
	for digits := 3; digits < 9; digits++ {
		if text := fmt.Sprintf("%.*f", digits, p); text[0] == '0' || p >= 1 {
			return text
		}
	}
	return "0.999999999"
}

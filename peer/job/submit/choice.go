package submit

import (
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/p2pmpi/p2pmpi/internal/reliability"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A Candidate is a peer that offers slots now.
type Candidate struct {
	Platform
	Slots   int                 `json:"slots"`             // free slots
	Machine string              `json:"machine,omitempty"` // equal for peers on one machine; empty: unknown, counts as a separate machine
	History reliability.History `json:"history"`
}

// A Choice is the number of replicas that a job gets, with the reasons.
type Choice struct {
	Replicas int           `json:"replicas"`
	Ranks    int           `json:"ranks"`
	Peers    int           `json:"peers"`    // peers that could run it
	Machines int           `json:"machines"` // machines of these peers
	Fails    float64       `json:"fails"`    // mean probability, over their slots, that such a peer ends within Expect
	Expect   time.Duration `json:"expect"`   // expected duration of the job, in nanoseconds
	Wanted   float64       `json:"wanted"`   // wanted probability that the job succeeds
	Success  float64       `json:"success"`  // resulting probability
}

// ChooseReplicas returns the fewest replicas with which a job of n ranks succeeds with the wanted
// probability. The job takes the expected time and runs on peers like the candidates. Only
// candidates of one of the platforms count; if the program is a module, all candidates count.
// ChooseReplicas returns an error if no number suffices, or if there is no room for that many
// replicas.
//
// The calculation uses the mean probability of failure, since it is not known yet which peers run
// the job. For replicas placed at random on peers with different probabilities, the mean overstates
// the loss of a rank rather than understating it (Maclaurin's inequality). No single peer's claim
// moves the mean by more than that peer's share of the slots.
func ChooseReplicas(n int, wanted float64, expect time.Duration, platforms []Platform, candidates []Candidate) (Choice, error) {
	c := Choice{Ranks: n, Expect: expect, Wanted: wanted}
	slots := 0
	taken := make(map[string]int) // slots used on each machine
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
		return c, fmt.Errorf("-r auto: found %d of the %s needed for one replica of each rank (-n %d)", slots, english.Plural(n, "slot", ""), n)
	}
	c.Fails /= float64(slots)
	var ok bool
	c.Replicas, ok = reliability.Replicas(n, c.Fails, wanted, room)
	c.Success = 1 - reliability.JobFails(n, c.Replicas, c.Fails)
	if !ok {
		return c, fmt.Errorf("-r auto: %s; --success %v requires more replicas, but there are no slots for them", c.reason(), wanted)
	}
	return c, nil
}

// Event returns the event that tells the user about the choice.
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

// probability formats p with as many digits as needed to distinguish it from 1.
func probability(p float64) string {
	for digits := 3; digits < 9; digits++ {
		if text := fmt.Sprintf("%.*f", digits, p); text[0] == '0' || p >= 1 {
			return text
		}
	}
	return "0.999999999"
}

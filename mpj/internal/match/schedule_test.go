package match

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A chooser returns a number from 0 to n-1. It makes every choice of a schedule.
type chooser func(n int) int

// A job holds the messages to one rank and the receives of that rank.
type job struct {
	messages [2][]Message // by source, in order
	posts    []spec
}

func newJob(choose chooser, messages, posts int) *job {
	j := new(job)
	for range messages {
		source := choose(2)
		seq := uint64(len(j.messages[source]) + 1)
		j.messages[source] = append(j.messages[source], Message{Source: source, Tag: int32(choose(2)), Seq: seq})
	}
	for range posts {
		j.posts = append(j.posts, spec{choose(3) - 1, int32(choose(2)) - 1}) // AnySource, 0 or 1; AnyTag or 0
	}
	return j
}

// play makes the events of the job happen at p in an order that choose selects, and checks p after each. Posts stay in
// order, and so do the messages of each source. An outcome follows its post. The outcomes at the decider are its own
// proposals, which play returns with the given ones.
func (j *job) play(p *process, outcomes []name, choose chooser) ([]name, error) {
	outcomes = append(slices.Clone(outcomes), make([]name, len(j.posts)-len(outcomes))...)
	log := ""
	for {
		var events []func()
		for source, ms := range j.messages {
			if n := p.count(source); n < len(ms) {
				events = append(events, func() { log += fmt.Sprint("\narrive ", ms[n].name(), ms[n].Tag); p.arrive(ms[n]) })
			}
		}
		if n := len(p.posts); n < len(j.posts) {
			events = append(events, func() { log += fmt.Sprint("\npost ", n, j.posts[n]); p.post(j.posts[n]) })
		}
		for i := range p.posts {
			n := outcomes[i]
			if p.decider && n == none {
				n = p.proposals[i]
			}
			if n != none && p.outcome[i] == none {
				events = append(events, func() { log += fmt.Sprint("\ndecide ", i, n); outcomes[i] = n; p.decide(i, n) })
			}
		}
		if len(events) == 0 {
			return outcomes, nil
		}
		events[choose(len(events))]()
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("%w, after %s", err, log)
		}
	}
}

// count returns the number of messages that have arrived from a source.
func (p *process) count(source int) (n int) {
	for i := range p.arrived {
		if p.arrived[i].Source == source {
			n++
		}
	}
	return n
}

// playRank plays a job at one decider and two followers, which get the messages of different sources in another order,
// and the outcomes at other times. All must make the matches of the decider.
func playRank(choose chooser, messages, posts int) error {
	j := newJob(choose, messages, posts)
	decider := newProcess(true, true)
	outcomes, err := j.play(decider, nil, choose)
	if err != nil {
		return fmt.Errorf("decider: %w", err)
	}
	for range 2 {
		follower := newProcess(true, false)
		if _, err := j.play(follower, outcomes, choose); err != nil {
			return fmt.Errorf("follower: %w", err)
		}
		if !slices.Equal(follower.got, decider.got) {
			return fmt.Errorf("job %v: the decider has the matches %v, a follower %v", j, decider.got, follower.got)
		}
	}
	return nil
}

// playTakeover plays a job at a decider, some of whose outcomes reach a follower, which then becomes the decider.
func playTakeover(choose chooser, messages, posts int) error {
	j := newJob(choose, messages, posts)
	outcomes, err := j.play(newProcess(true, true), nil, choose)
	if err != nil {
		return fmt.Errorf("old decider: %w", err)
	}
	for i := range outcomes {
		if choose(2) == 0 {
			outcomes[i] = none
		}
	}
	next := newProcess(true, false)
	if _, err = j.play(next, outcomes, choose); err != nil {
		return fmt.Errorf("follower: %w", err)
	}
	next.promote()
	if err = next.check(); err == nil {
		_, err = j.play(next, outcomes, choose)
	}
	if err != nil {
		return fmt.Errorf("new decider: %w", err)
	}
	return nil
}

func TestR4RandomSchedules(t *testing.T) {
	for name, play := range map[string]func(chooser, int, int) error{"rank": playRank, "takeover": playTakeover} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3000) {
				random := rand.New(rand.NewPCG(seed, 0))
				if err := play(random.IntN, random.IntN(10), random.IntN(10)); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		})
	}
}

// FuzzSchedule plays the jobs and the orders of events that the bytes select.
func FuzzSchedule(f *testing.F) {
	f.Add([]byte{3, 4, 0, 1, 1, 0, 1, 1, 0, 0, 1, 1, 2, 0, 1, 2})
	f.Add([]byte{8, 8, 1, 0, 0, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 2, 1, 0, 0, 1, 1, 0, 0, 2, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, play := range []func(chooser, int, int) error{playRank, playTakeover} {
			at := 0
			choose := func(n int) int { // zero after the last byte
				if at++; at > len(b) {
					return 0
				}
				return int(b[at-1]) % n
			}
			if err := play(choose, choose(12), choose(12)); err != nil {
				t.Error(err)
			}
		}
	})
}

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/nemesis"
)

// A chronicle is what the p2pruns of one job have said happened to it.
type chronicle struct {
	begun     time.Time // the job runs
	following sync.WaitGroup

	mu       sync.Mutex
	notes    []string
	placed   map[nemesis.Process]string // peers, also of those that came while the job ran
	failures []nemesis.Failure          // while the job ran
	kept     bool                       // another p2prun can go on with the job
	over     bool                       // the job had its result
}

func newChronicle(begun time.Time) *chronicle {
	return &chronicle{begun: begun, placed: make(map[nemesis.Process]string)}
}

// follow takes down what a p2prun says, until it ends.
func (c *chronicle) follow(j *job) {
	c.following.Go(func() { // ends with p2prun
		for e := range j.events {
			c.take(e)
		}
	})
}

func (c *chronicle) take(e event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := e.Time.Sub(c.begun)
	for _, p := range e.Placed {
		c.placed[nemesis.Process{Rank: p.Rank, Replica: p.Replica}] = p.Peer
	}
	if e.Event == "view" && e.Text != "" {
		c.notes = append(c.notes, fmt.Sprintf("view, at %v: %s", at.Round(time.Millisecond), e.Text))
	}
	if e.View != nil && !c.over {
		c.compare(at, e.View.R, e.View.States)
	}
	c.kept = c.kept || e.Event == "kept"
	c.over = c.over || e.Phase == "releasing"
}

// compare takes down who has failed by the latest view, rank by rank with so many
// replicas each.
func (c *chronicle) compare(at time.Duration, replicas int, states []string) {
	for i, s := range states {
		p := nemesis.Process{Rank: i / replicas, Replica: i % replicas}
		if _, known := c.failure(p); s == "failed" && !known {
			c.failures = append(c.failures, nemesis.Failure{Process: p, At: at, Why: c.obituary(p)})
		}
	}
}

// obituary is what was said last of a process.
func (c *chronicle) obituary(p nemesis.Process) string {
	for i := len(c.notes) - 1; i >= 0; i-- {
		if strings.Contains(c.notes[i], fmt.Sprintf(": rank %d replica %d ", p.Rank, p.Replica)) {
			return c.notes[i]
		}
	}
	return "nothing is said of it"
}

func (c *chronicle) failure(p nemesis.Process) (nemesis.Failure, bool) {
	for _, f := range c.failures {
		if f.Process == p {
			return f, true
		}
	}
	return nemesis.Failure{}, false
}

// failedBy returns when the last of some processes was failed, if all have been.
func (c *chronicle) failedBy(all []nemesis.Process) (at time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range all {
		f, failed := c.failure(p)
		if !failed {
			return 0, false
		}
		at = max(at, f.At)
	}
	return at, len(all) > 0
}

// state returns whether the job can be gone on with, and whether it had its result.
func (c *chronicle) state() (kept, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept, c.over
}

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/nemesis"
)

// A chronicle records the events of one job, as reported by its p2pruns.
type chronicle struct {
	begun     time.Time // time when the job began to run
	following sync.WaitGroup

	mu       sync.Mutex
	notes    []string
	placed   map[nemesis.Process]string // peer of each process, including those that joined while the job ran
	failures []nemesis.Failure          // while the job ran
	aside    []bool                     // whether a process is set aside in the latest view; indexed like its states
	// abandoned holds the processes that were set aside when the last replica of their rank that counted
	// failed.
	abandoned map[nemesis.Process]bool
	kept      bool // another p2prun can resume the job
	over      bool // the job has its result
}

func newChronicle(begun time.Time) *chronicle {
	return &chronicle{begun: begun, placed: make(map[nemesis.Process]string), abandoned: make(map[nemesis.Process]bool)}
}

// follow records the events of a p2prun until it ends.
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
		c.aside = make([]bool, len(e.View.States))
		for i, since := range e.View.Aside {
			c.aside[i] = since != 0
		}
	}
	c.kept = c.kept || e.Event == "kept"
	c.over = c.over || e.Phase == "releasing"
}

// compare records the processes that have failed according to the latest view. states holds a
// string for each rank, with a state for each replica.
func (c *chronicle) compare(at time.Duration, replicas int, states []string) {
	for i, s := range states {
		p := nemesis.Process{Rank: i / replicas, Replica: i % replicas}
		if _, known := c.failure(p); s != "failed" || known || c.abandoned[p] {
			continue
		}
		if left := states[p.Rank*replicas : (p.Rank+1)*replicas]; len(c.aside) == len(states) && c.aside[i] && !slices.Contains(left, "live") {
			c.abandoned[p] = true
		} else {
			c.failures = append(c.failures, nemesis.Failure{Process: p, At: at, Why: c.failureNotice(p)})
		}
	}
}

// failureNotice returns the last message about a process.
func (c *chronicle) failureNotice(p nemesis.Process) string {
	for i := len(c.notes) - 1; i >= 0; i-- {
		if strings.Contains(c.notes[i], fmt.Sprintf(": rank %d replica %d ", p.Rank, p.Replica)) {
			return c.notes[i]
		}
	}
	return "no message"
}

func (c *chronicle) failure(p nemesis.Process) (nemesis.Failure, bool) {
	for _, f := range c.failures {
		if f.Process == p {
			return f, true
		}
	}
	return nemesis.Failure{}, false
}

// failedBy returns the time when the last of some processes was failed, if all have been.
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

// state returns whether the job can be resumed, and whether it has its result.
func (c *chronicle) state() (kept, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept, c.over
}

// TestChronicleRecordsFailures records the failures in a job that adds processes to its view. At the end of the
// job, all processes are ordered to end.
func TestChronicleRecordsFailures(t *testing.T) {
	t.Parallel()
	c := newChronicle(time.Now())
	j := &job{events: make(chan event, 10)}
	say := func(after time.Duration, e event) {
		e.Time = c.begun.Add(after)
		j.events <- e
	}
	view := func(r int, states ...string) event {
		var e event
		text := fmt.Sprintf(`{"event": "view", "view": {"r": %d, "states": ["%s"]}}`, r, strings.Join(states, `","`))
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	say(time.Second, event{Event: "view", Text: "rank 1 replica 0 was killed"})
	say(time.Second, view(2, "live", "live", "failed", "live"))
	say(2*time.Second, event{Event: "kept"})
	say(3*time.Second, view(3, "live", "live", "vacant", "failed", "live", "live"))
	say(4*time.Second, view(3, "finished", "failed", "vacant", "failed", "live", "live"))
	say(5*time.Second, event{Event: "phase", Phase: "releasing"})
	say(6*time.Second, view(3, "finished", "failed", "vacant", "failed", "live", "failed"))
	close(j.events)
	c.follow(j)
	c.following.Wait()
	if len(c.abandoned) > 0 {
		t.Errorf("%v: no process was set aside", c.abandoned)
	}
	killed, second := nemesis.Process{Rank: 1, Replica: 0}, nemesis.Process{Rank: 0, Replica: 1}
	want := []nemesis.Failure{
		{Process: killed, At: time.Second, Why: "view, at 1s: rank 1 replica 0 was killed"},
		{Process: second, At: 4 * time.Second, Why: "no message"},
	}
	if !slices.Equal(c.failures, want) {
		t.Errorf("failures %v, want %v", c.failures, want)
	}
	if kept, over := c.state(); !kept || !over {
		t.Errorf("a job that is over is kept: %v, over: %v", kept, over)
	}
	if at, ok := c.failedBy([]nemesis.Process{killed, second}); !ok || at != 4*time.Second {
		t.Errorf("both failed by %v, %v", at, ok)
	}
	if _, ok := c.failedBy([]nemesis.Process{killed, {Rank: 1, Replica: 2}}); ok {
		t.Error("a process that was failed after the end of the job counts")
	}
}

// TestChronicleRecordsReplicasSetAside checks replicas that are set aside. When the last replica of a rank
// that counts fails, the rank is lost, together with its replicas that are set aside. A replica
// that is set aside and fails by itself has failed.
func TestChronicleRecordsReplicasSetAside(t *testing.T) {
	t.Parallel()
	c := newChronicle(time.Now())
	for _, text := range []string{
		`{"r": 2, "states": ["live", "live", "live", "live"], "aside": [0, 2, 0, 3]}`,
		`{"r": 2, "states": ["live", "live", "live", "failed"], "aside": [0, 2, 0, 0]}`,
		`{"r": 2, "states": ["failed", "failed", "live", "failed"]}`,
	} {
		var e event
		if err := json.Unmarshal([]byte(`{"event": "view", "view": `+text+`}`), &e); err != nil {
			t.Fatal(err)
		}
		c.take(e)
	}
	var failed []nemesis.Process
	for _, f := range c.failures {
		failed = append(failed, f.Process)
	}
	if want := []nemesis.Process{{Rank: 1, Replica: 1}, {Rank: 0, Replica: 0}}; !slices.Equal(failed, want) {
		t.Errorf("the failed processes are %v, want %v", failed, want)
	}
	if want := (nemesis.Process{Rank: 0, Replica: 1}); len(c.abandoned) != 1 || !c.abandoned[want] {
		t.Errorf("the abandoned processes are %v, want %v", c.abandoned, want)
	}
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

const (
	beatRanks    = 5
	beatEvery    = 2 * time.Millisecond
	killInterval = 700 * time.Millisecond // time between kills: long enough for all effects to end
	inTransit    = 20 * time.Millisecond  // time in which messages of a killed master may still arrive
)

// takeovers runs a job in which it kills the process of each master but rank 0's, and then a job in
// which it kills their peers.
func (f *field) takeovers(ctx context.Context) (all []sample, err error) {
	for _, killed := range []struct {
		what string
		kill func(process string) (time.Time, error)
	}{{"process", f.grid.KillProcess}, {"peer", f.grid.KillPeerOf}} {
		samples, err := f.beat(ctx, killed.kill)
		for i := range samples {
			samples[i].Killed = killed.what
		}
		if all = append(all, samples...); err != nil {
			return all, fmt.Errorf("kill a %s: %w", killed.what, err)
		}
		if err := f.grid.Replace(ctx); err != nil {
			return all, err
		}
	}
	return all, nil
}

// beat runs the program beat and kills masters.
func (f *field) beat(ctx context.Context, kill func(process string) (time.Time, error)) ([]sample, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	length := beatRanks*killInterval + time.Second
	cmd := f.grid.Command(ctx, "--json", "-n", fmt.Sprint(beatRanks), "-r", "2", "-a", "spread", "--channels", "tcp",
		"--on-divergence", "warn", // each replica of rank 0 prints times of its own clock
		f.built("beat"), "-for", length.String(), "-every", beatEvery.String())
	var gaps bytes.Buffer
	cmd.Dir, cmd.Stdout = f.dir, &gaps
	told, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &campaign{kill: kill, masters: make(map[int]int), views: make(map[int]time.Time), kills: make(map[int]time.Time)}
	failed := c.follow(ctx, told)
	if err := cmd.Wait(); err != nil {
		return nil, errors.Join(failed, fmt.Errorf("p2prun: %w\n%s", err, c.said.Bytes()))
	}
	if failed != nil {
		return nil, failed
	}
	return c.samples(&gaps)
}

// A campaign kills the masters of a job, one after the other.
type campaign struct {
	kill    func(process string) (time.Time, error)
	masters map[int]int       // replica by rank, if not 0
	kills   map[int]time.Time // time of the kill by rank
	views   map[int]time.Time // by rank: time of the first view with another master after the kill
	said    bytes.Buffer
}

// A word is a line of p2prun --json.
type word struct {
	Event string
	Time  time.Time
	Phase string
	View  *view.View
}

// follow kills a master at intervals once the job runs, until the job ends.
func (c *campaign) follow(ctx context.Context, told io.Reader) error {
	words := make(chan word)
	go func() { // ends with p2prun
		defer close(words)
		for lines := bufio.NewScanner(told); lines.Scan(); {
			var w word
			c.said.Write(append(lines.Bytes(), '\n'))
			if json.Unmarshal(lines.Bytes(), &w) == nil {
				words <- w
			}
		}
	}()
	var failed error
	var next <-chan time.Time
	for rank := 1; ; {
		select {
		case w, ok := <-words:
			if !ok {
				return failed
			}
			if w.Phase == "running" {
				next = time.After(killInterval)
			}
			c.note(w)
		case <-next:
			if next = nil; rank < beatRanks {
				next = time.After(killInterval)
				failed = errors.Join(failed, c.strike(rank))
				rank++
			}
		}
	}
}

// strike kills the master of a rank.
func (c *campaign) strike(rank int) error {
	when, err := c.kill(fmt.Sprintf("%d.%d", rank, c.masters[rank]))
	c.kills[rank] = when
	return err
}

// note records the masters of a view.
func (c *campaign) note(w word) {
	if w.View == nil {
		return
	}
	for rank := range beatRanks {
		master, ok := w.View.Master(rank)
		if !ok || master.Replica == c.masters[rank] {
			continue
		}
		c.masters[rank] = master.Replica
		if at, ok := c.kills[rank]; ok && c.views[rank].IsZero() && w.Time.After(at) {
			c.views[rank] = w.Time
		}
	}
}

// samples combines views and silences. beat does not report silences of up to four beats; for a
// rank without a gap, samples uses four beats.
func (c *campaign) samples(gaps io.Reader) (all []sample, err error) {
	silences := make(map[int]gap)
	for lines := bufio.NewScanner(gaps); lines.Scan(); {
		rank, g, err := gapOf(lines.Text())
		if err != nil {
			return nil, err
		}
		killed := c.kills[rank]
		if g.to.After(killed) && g.from.Before(killed.Add(inTransit)) && g.length() > silences[rank].length() {
			silences[rank] = g
		}
	}
	for rank, killed := range c.kills {
		if c.views[rank].IsZero() {
			return nil, fmt.Errorf("rank %d has no new master after %v", rank, killed)
		}
		message := 4 * beatEvery
		if g := silences[rank]; g.length() > 0 {
			message = g.to.Sub(killed)
		}
		all = append(all, sample{Master: c.views[rank].Sub(killed).Seconds(), Message: message.Seconds()})
	}
	return all, nil
}

// A gap is a silence of a rank. The longest gap that begins with a kill is that of the takeover.
type gap struct{ from, to time.Time }

func (g gap) length() time.Duration { return g.to.Sub(g.from) }

// gapOf parses a line of beat.
func gapOf(line string) (rank int, g gap, err error) {
	var last, next int64
	if _, err = fmt.Sscanf(line, "gap %d %d %d", &rank, &last, &next); err != nil {
		return 0, gap{}, fmt.Errorf("read %q of beat: %w", line, err)
	}
	return rank, gap{time.Unix(0, last), time.Unix(0, next)}, nil
}

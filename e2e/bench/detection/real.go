package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/grid"
)

// realTimes is detectionTimes with real processes, at real time.
func realTimes(o options) ([][]string, error) { return inNamespace("times", o.seed) }

// realWrong is falseFailures with real processes on an overloaded machine.
func realWrong(o options) ([][]string, error) { return inNamespace("false", o.seed) }

// inNamespace makes a table in a process with its own network namespace, so that cutting links
// affects no other process.
func inNamespace(table string, seed uint64) (rows [][]string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), tableTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--net", self, "inside", table, fmt.Sprint(seed))
	grid.EndWithParent(cmd)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("in a network namespace, which needs root: %w", err)
	}
	err = json.Unmarshal(out, &rows)
	return rows, err
}

// tableTimeout bounds the time for a table. It is more than any table takes.
const tableTimeout = 30 * time.Minute

// inside is the main function of the process in the namespace.
func inside(table, seed string) error {
	number, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), tableTimeout)
	defer cancel()
	random := rand.New(rand.NewPCG(number, 0))
	of := map[string]func(context.Context, *rand.Rand) ([][]string, error){"times": groupTimes, "false": groupFailures}[table]
	if of == nil {
		return fmt.Errorf("no table %q", table)
	}
	rows, err := of(ctx, random)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(rows)
}

// groupTimes returns the table of detection times in real groups.
func groupTimes(ctx context.Context, random *rand.Rand) ([][]string, error) {
	rows := [][]string{{"n", "fault", "gossip: min", "mean", "max", "σ", "fast: min", "mean", "max", "σ", "false failures: gossip", "fast", "missed failures: gossip", "fast"}}
	for _, n := range []int{8, 16, 32, 64, 128, 192} {
		times, wrong, missed := make(map[string][]float64), make(map[string]int), make(map[string]int) // by fault and mode
		rounds := min(max(1, n/16), realRounds)
		for range realRounds / rounds {
			if err := injectFaults(ctx, n, rounds, random, times, wrong, missed); err != nil {
				return nil, fmt.Errorf("group of %d: %w", n, err)
			}
		}
		for _, f := range realFaults {
			row := []string{fmt.Sprint(n), f.name}
			for _, mode := range modes {
				row = append(row, figures(times[f.name+mode.String()])...)
			}
			for _, count := range []map[string]int{wrong, missed} {
				for _, mode := range modes {
					row = append(row, fmt.Sprint(count[f.name+mode.String()]))
				}
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// realRounds is the number of members of each group size that each fault affects. One group loses several
// members as long as it keeps most of them. Otherwise, each loss uses another group.
const realRounds = 4

// injectFaults makes a group of n lose a member by each fault in turn, and repeats this rounds times. wrong
// counts the verdicts about live members until the next fault. missed counts the verdicts that are missing after
// a minute, because their observers were themselves failed wrongly and no longer report.
func injectFaults(ctx context.Context, n, rounds int, random *rand.Rand, times map[string][]float64, wrong, missed map[string]int) error {
	g, err := newGroup(ctx, n, 0)
	if err != nil {
		return err
	}
	defer g.close()
	g.wrong, g.missed = wrong, missed
	for i, lost := range random.Perm(n)[:rounds*len(realFaults)] {
		f := realFaults[i%len(realFaults)]
		settle := time.Duration((1 + random.Float64()) * float64(period)) // a random phase of the period
		if i == 0 {
			settle += 10 * period // let streams open and tables fill
		}
		g.fault = f.name
		g.quiet(settle)
		if err := g.lose(ctx, lost, f, times); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// quiet records reports for a while in which no member should fail.
func (g *group) quiet(d time.Duration) {
	end := time.After(d)
	for {
		select {
		case r := <-g.told:
			g.note(r)
		case <-end:
			return
		}
	}
}

// note records a report. A report by a faulty member is not wrong: a member that is cut off has
// good reason to fail all others.
func (g *group) note(r report) {
	if !g.members[r.member].faulty && !g.members[r.observer].faulty {
		g.wrong[g.fault+r.mode]++
	}
	r.at = time.Time{}
	g.known[r] = true
}

// lose makes a member fail, and waits until all survivors know, in all modes.
func (g *group) lose(ctx context.Context, member int, f realFault, times map[string][]float64) error {
	p := g.members[member]
	p.faulty = true
	at := time.Now()
	if err := f.end(p, ctx); err != nil {
		return err
	}
	missing := g.unaware(member)
	limit := time.After(time.Minute)
	for len(missing) > 0 {
		select {
		case r := <-g.told:
			g.note(r)
			when := r.at
			r.at = time.Time{}
			if missing[r] {
				delete(missing, r)
				times[f.name+r.mode] = append(times[f.name+r.mode], when.Sub(at).Seconds())
			}
		case <-limit:
			for r := range missing {
				g.missed[f.name+r.mode]++
			}
			return nil
		}
	}
	return nil
}

// unaware returns the reports of a member's failure that are still missing.
func (g *group) unaware(member int) map[report]bool {
	missing := make(map[report]bool)
	for i, q := range g.members {
		for _, mode := range modes {
			r := report{observer: i, member: member, mode: mode.String()}
			if !q.faulty && !g.known[r] {
				missing[r] = true
			}
		}
	}
	return missing
}

// groupFailures returns the table of false failures while endless loops occupy each processor.
func groupFailures(ctx context.Context, random *rand.Rand) ([][]string, error) {
	const seconds = 40
	rows := [][]string{{"n", "condition", "tolerated hang", "seconds", "gossip: false failures", "fast: false failures"}}
	for _, c := range []struct {
		n, loops int
		hang     time.Duration
		pauses   bool
	}{
		{16, 4, 0, false}, {16, 4, 2 * period, false}, {16, 4, 2 * period, true},
	} {
		what := fmt.Sprintf("%d endless loops for each processor", c.loops)
		if c.pauses {
			what += "; members suspended at random, up to the tolerated hang"
		}
		count, err := overload(ctx, c.n, c.loops*runtime.NumCPU(), c.hang, c.pauses, seconds*time.Second, random)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		rows = append(rows, []string{
			fmt.Sprint(c.n), what, c.hang.String(), fmt.Sprint(seconds), fmt.Sprint(count[modes[0].String()]), fmt.Sprint(count[modes[1].String()]),
		})
	}
	return rows, nil
}

// overload runs a group beside endless loops, and returns the number of false failures by mode.
func overload(ctx context.Context, n, loops int, hang time.Duration, pauses bool, d time.Duration, random *rand.Rand) (wrong map[string]int, err error) {
	g, err := newGroup(ctx, n, hang)
	if err != nil {
		return nil, err
	}
	defer g.close()
	g.quiet(10 * period)
	for range loops {
		spin := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		grid.EndWithParent(spin)
		if err := spin.Start(); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, spin.Process.Kill()); spin.Wait() }()
	}
	end := time.After(d)
	var pause, resume <-chan time.Time
	if pauses {
		pause = time.After(period)
	}
	var paused *process
	for {
		select {
		case r := <-g.told:
			g.note(r)
		case <-pause:
			paused = g.members[random.IntN(n)]
			paused.cmd.Process.Signal(syscall.SIGSTOP)
			pause, resume = nil, time.After(time.Duration(random.Int64N(int64(hang))))
		case <-resume:
			paused.cmd.Process.Signal(syscall.SIGCONT)
			pause, resume = time.After(time.Duration(random.Int64N(int64(period)))), nil
		case <-end:
			return g.wrong, nil
		}
	}
}

package crowd

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/crowd/sim"
	"github.com/p2pmpi/p2pmpi/e2e/internal/markdown"
	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/internal/virtualtime"
)

var (
	out   = flag.String("out", "", "write tables into `DIR`/networking.md")
	hours = flag.Float64("hours", 0.2, "let submitters submit for `N` hours")
	all   = flag.Bool("all", false, "try every crowd, at 100 peers instead of 25, with longer jobs")
)

const rtt = 50 * time.Millisecond

// base returns the crowd that the project promises to serve.
func base() sim.Crowd {
	peers, length := 25, time.Minute
	if *all {
		peers, length = 100, 2*time.Minute
	}
	return sim.Crowd{
		Seed: 1, Submitters: 20, Peers: peers, Slots: 2, Demand: 3, Replicas: 2, Run: length, RTT: rtt,
		For: time.Duration(*hours * float64(time.Hour)), Warmup: 4 * time.Minute,
	}
}

func TestCrowd(t *testing.T) {
	skip.Long(t)
	rows := [][]string{{"crowd", "utilisation", "held", "one list, in order", "one list, lengths known", "jobs", "median wait", "95 %", "longest",
		"wait, large / small jobs", "S1–S4 broken"}}
	for i, tt := range []struct {
		name   string
		least  float64 // share of the slots that must run processes while jobs wait
		change func(*sim.Crowd)
	}{
		{"no faulty peers", 0.85, func(*sim.Crowd) {}},
		{"submitters killed, each every 10 min", 0.85, func(c *sim.Crowd) { c.Crash = 10 * time.Minute }},
		{"10 peers dead, 10 silent", 0.8, func(c *sim.Crowd) { c.Dead, c.Silent = 0.1, 0.1 }},
		{"4 slots at each peer, jobs of 20 s", 0.7, func(c *sim.Crowd) { c.Slots, c.Run = 4, 20*time.Second }},
		{"25 peers, jobs of 20 min, for 4 h", 0.85, func(c *sim.Crowd) {
			c.Seed, c.Peers, c.Run, c.For, c.Warmup = 2, 25, 20*time.Minute, 4*time.Hour, 30*time.Minute // turns of 5 min: 0.69
		}},
	} {
		if !*all && i > 0 {
			break
		}
		t.Run(tt.name, func(t *testing.T) {
			c := base()
			tt.change(&c)
			virtualtime.Test(t, func(t *testing.T) {
				o := c.Play()
				rows = append(rows, append([]string{tt.name}, row(c, o)...))
				judge(t, c, o, tt.least)
			})
		})
	}
	publish(t, "crowd:slots", rows)
}

// judge checks the properties that hold for every crowd.
func judge(t *testing.T, c sim.Crowd, o sim.Outcome, least float64) {
	for _, v := range o.Violations {
		t.Error(v)
	}
	if o.Leaked != 0 {
		t.Errorf("S4: %d slots are still held after all jobs have ended", o.Leaked)
	}
	if o.Utilisation < least {
		t.Errorf("%.3f of the slots ran, want %v", o.Utilisation, least)
	}
	ws := waits(o)
	if b := burden(o); b > 3 {
		t.Errorf("large jobs wait %.1f times as long as small ones", b)
	}
	if longest, fair := ws[len(ws)-1], fair(c); longest > 2*fair {
		t.Errorf("a job has waited for %v, more than twice the fair share of %v", longest, fair)
	}
}

// fair returns how long each submitter would wait and run if all took turns. It assumes that 85 %
// of the slots are in use, and adds the time to start and end.
func fair(c sim.Crowd) time.Duration {
	healthy := 1 - c.Dead - c.Silent
	return time.Duration(c.Demand/(0.85*healthy)*float64(c.Run)) + 30*time.Second
}

// burden returns the ratio between the waiting times of the largest and the smallest third of the
// jobs.
func burden(o sim.Outcome) float64 {
	bySize := slices.SortedFunc(slices.Values(o.Jobs), func(a, b sim.JobRecord) int { return a.Slots - b.Slots })
	third := len(bySize) / 3
	var small, large time.Duration
	for i := range third {
		small += bySize[i].Waited
		large += bySize[len(bySize)-1-i].Waited
	}
	return float64(large) / float64(max(1, small))
}

// waits returns the waiting times of jobs, the shortest first.
func waits(o sim.Outcome) []time.Duration {
	var ws []time.Duration
	for _, j := range o.Jobs {
		ws = append(ws, j.Waited.Round(time.Second))
	}
	slices.Sort(ws)
	return ws
}

// row returns an outcome as a row of the table, with the theoretical optimum.
func row(c sim.Crowd, o sim.Outcome) []string {
	ws, ran := waits(o), 0
	for _, j := range o.Jobs {
		if j.Ran {
			ran++
		}
	}
	at := func(share float64) string { return ws[int(share*float64(len(ws)-1))].String() }
	return []string{
		percent(o.Utilisation), percent(o.Held),
		percent(c.Schedule(sim.InOrder).Utilisation), percent(c.Schedule(sim.Foreseeing).Utilisation),
		strconv.Itoa(ran), at(0.5), at(0.95), at(1), fmt.Sprintf("× %.1f", burden(o)), strconv.Itoa(len(o.Violations)),
	}
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// publish logs a table, and writes it into the page if -out is given.
func publish(t *testing.T, section string, rows [][]string) {
	text := markdown.Table(rows)
	t.Log("\n" + text)
	if *out != "" {
		if err := markdown.Insert(filepath.Join(*out, "networking.md"), section, text); err != nil {
			t.Error(err)
		}
	}
}

// TestHold64 makes one submitter hold 64 slots at peers of one slot each, some of which do not
// answer. There are 82 candidates, as discovery returns: 64 and the overbooking.
func TestHold64(t *testing.T) {
	const seeds, most = 20, 2 * time.Second // virtual time, without noise
	rows := [][]string{{"candidates", "faulty", "held within, median", "longest", "too few"}}
	for _, candidates := range []int{82, 100, 128} {
		for _, fault := range []string{"none", "dead", "silent"} {
			var took []time.Duration
			failed := 0
			for seed := range uint64(seeds) {
				c := sim.Crowd{Seed: seed, Peers: candidates, Slots: 1, Replicas: 2, RTT: rtt}
				switch fault {
				case "dead":
					c.Dead = 0.2
				case "silent":
					c.Silent = 0.2
				}
				virtualtime.Test(t, func(t *testing.T) {
					d, err := c.Hold(32)
					if err != nil {
						failed++
						t.Errorf("%d candidates, 20 %% %s, seed %d: %v", candidates, fault, seed, err)
					}
					took = append(took, d)
				})
			}
			slices.Sort(took)
			if longest := took[seeds-1]; longest > most {
				t.Errorf("%d candidates, 20 %% %s: held within %v, want %v", candidates, fault, longest, most)
			}
			what := "none"
			if fault != "none" {
				what = "20 % " + fault
			}
			rows = append(rows, []string{strconv.Itoa(candidates), what, took[seeds/2].String(), took[seeds-1].String(), strconv.Itoa(failed)})
		}
	}
	publish(t, "crowd:hold", rows)
}

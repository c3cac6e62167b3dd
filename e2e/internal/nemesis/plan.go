package nemesis

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// A Round is a number of jobs that run one after the other on the same peers. Killed peers restart
// between the jobs.
type Round struct {
	Network uint64 // seed of the network's losses
	Jobs    []Job
}

// A Job is a submission and the faults to inject into it.
type Job struct {
	Program string // one of Programs
	Dice    uint64 // seed of the program's arguments
	N, R    int
	// Client makes a peer submit the job and outlive it. Otherwise p2prun is itself a submit-only
	// peer.
	Client bool
	// Beyond allows strikes that destroy all replicas of a rank.
	Beyond bool
	// Concentrate puts two ranks on a peer where possible.
	Concentrate bool
	Early       Early
	Strikes     []Strike // in order of time
	// Lie names the lie of the peer Liar during the job, or empty for none.
	Lie string
}

// An Early strike hits a peer before the job runs; the zero value does nothing.
type Early struct {
	Phase string // "reserving", "staging" or "starting"
	Peer  int    // number of the peer, which may have no part in the job
	Kind  Kind   // KillPeer or FullDisk, until the job runs
}

// Peers is the number of peers in a round. With Slots slots each, there is room for every job even
// if two peers are gone.
const (
	Peers = 8
	Slots = 2
)

// Liar is the number of the peer that lies in some jobs. Whether it runs processes of them depends on their
// placement.
const Liar = 1

// printsSomethingElse is a lie that is not detected in a job that another submitter process
// resumes, because that process does not have all output of the job.
const printsSomethingElse = "prints something else"

// Lies lists what a peer can lie about, as implemented in e2e/testdata/liar/lie.go.
var Lies = []string{
	"staging fails", "never calls mpj.Init", "aborts", "is ahead and aborts", "exits with another status", "never exits",
	"has another account", printsSomethingElse, "prints nothing", "never ends its output", "ends early",
	"fails its rank", "fails all", "finishes all", "has a process join", "accuses all peers", "takes over the views",
}

// Programs are the programs of the jobs.
var Programs = []string{"ep", "is", "farm", "heat", "traffic", "stepper", "flood"}

const (
	jobs       = 4
	maxStrikes = 5
	// span is the time in which strikes begin; jobs take about as long.
	span = 6 * time.Second
)

// Of returns a round. The same seed and number return the same round.
func Of(seed uint64, number int) Round {
	random := rand.New(rand.NewPCG(seed, uint64(number)))
	r := Round{Network: random.Uint64()}
	for range jobs {
		r.Jobs = append(r.Jobs, jobOf(random))
	}
	return r
}

func jobOf(random *rand.Rand) Job {
	j := Job{
		Program: Programs[random.IntN(len(Programs))], Dice: random.Uint64(),
		N: 2 + random.IntN(3), R: 2 + random.IntN(2),
		Client: random.IntN(2) == 0, Beyond: random.IntN(6) == 0, Concentrate: random.IntN(2) == 0,
	}
	if random.IntN(5) == 0 {
		phases := []string{"reserving", "staging", "starting"}
		kinds := []Kind{KillPeer, FullDisk}
		j.Early = Early{phases[random.IntN(len(phases))], random.IntN(Peers), kinds[random.IntN(len(kinds))]}
	}
	for range random.IntN(maxStrikes + 1) {
		j.Strikes = append(j.Strikes, strikeOf(random, j.N, j.R))
	}
	slices.SortFunc(j.Strikes, func(a, b Strike) int { return cmp.Compare(a.At, b.At) })
	if random.IntN(4) == 0 {
		j.deceive(Lies[random.IntN(len(Lies))])
	}
	return j
}

// deceive makes the liar lie. It ensures that an honest replica of each rank survives, because a
// liar without honest replicas is believed.
func (j *Job) deceive(lie string) {
	j.Lie, j.Beyond, j.Early = lie, false, Early{}
	if lie == printsSomethingElse {
		j.Strikes = slices.DeleteFunc(j.Strikes, func(s Strike) bool { return s.Kind == KillSubmitter || s.Kind == KillResident })
	}
}

func strikeOf(random *rand.Rand, n, r int) Strike {
	t := weighted(random)
	s := Strike{
		Kind: t.kind, At: between(random, 0, span), For: between(random, t.least, t.most),
		Victim: Process{random.IntN(n), random.IntN(r)}, Other: Process{random.IntN(n), random.IntN(r)},
	}
	if t.kind.Wakes() {
		s.At /= 2 // the target should wake while the job runs
	}
	switch t.kind {
	case Clock:
		s.By = time.Hour
		if random.IntN(2) == 0 {
			s.By = -time.Hour
		}
	case Loss:
		s.Much = 0.05 * random.Float64()
	case Delay:
		s.By = between(random, time.Millisecond, 60*time.Millisecond)
	case Late:
		s.Much, s.By = 0.3*random.Float64(), between(random, time.Millisecond, 30*time.Millisecond)
	}
	return s
}

// weighted picks a random trait, by weight.
func weighted(random *rand.Rand) trait {
	sum := 0
	for _, t := range traits {
		sum += t.weight
	}
	at := random.IntN(sum)
	for _, t := range traits {
		if at -= t.weight; at < 0 {
			return t
		}
	}
	panic("unreachable")
}

// between returns a random time in whole milliseconds.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(random.Int64N(int64((most-least)/time.Millisecond)))*time.Millisecond
}

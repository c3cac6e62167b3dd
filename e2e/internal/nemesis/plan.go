package nemesis

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// A Round is some jobs that run one after the other on the same peers. Peers that
// were killed come back between them.
type Round struct {
	Network uint64 // seed of what the network loses
	Jobs    []Job
}

// A Job is what is submitted, and what is done to it.
type Job struct {
	Program string // one of Programs
	Dice    uint64 // seed of the program's arguments
	N, R    int
	// Client has a peer submit it that lives on; otherwise p2prun is a peer of its
	// own.
	Client bool
	// Beyond has the strikes carried out even if they take all replicas of a rank.
	Beyond bool
	// Concentrate puts two ranks on a peer where that is possible.
	Concentrate bool
	Early       Early
	Strikes     []Strike // by time
	// Lie names what the peer Liar lies about during the job; "" for nothing.
	Lie string
}

// An Early strike hits a peer before the job runs; the zero one does nothing.
type Early struct {
	Phase string // "reserving", "staging" or "starting"
	Peer  int    // by number; it may turn out to be none of the job's
	Kind  Kind   // KillPeer or FullDisk, until the job runs
}

// Peers is how many peers a round has. With Slots slots each there is room for every
// job with two peers gone.
const (
	Peers = 8
	Slots = 2
)

// Liar is the number of the peer that lies in some jobs. Whether it runs processes of them depends on their
// placement.
const Liar = 1

// printsSomethingElse is a lie that is not detected in a job that another submitter process resumes, because
// that process does not have all that the job has printed.
const printsSomethingElse = "prints something else"

// Lies lists what a peer can lie about, as implemented in e2e/testdata/liar/lie.go.
var Lies = []string{
	"staging fails", "never calls mpj.Init", "aborts", "is ahead and aborts", "exits with another status", "never exits",
	"has another account", printsSomethingElse, "prints nothing", "never ends its output", "ends early",
	"fails its rank", "fails all", "finishes all", "has a process join", "accuses all peers",
}

// Programs are the programs of the jobs.
var Programs = []string{"ep", "is", "farm", "heat", "traffic", "stepper", "flood"}

const (
	jobs       = 4
	maxStrikes = 5
	// span is when strikes begin: jobs take about as long.
	span = 6 * time.Second
)

// Of returns a round. The same seed and number give the same.
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

// deceive makes the liar lie. An honest replica of each rank survives, because a liar that is left alone is
// believed.
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
		s.At /= 2 // it should wake while the job runs
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

// weighted picks a trait.
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

// between returns a time of whole milliseconds.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(random.Int64N(int64((most-least)/time.Millisecond)))*time.Millisecond
}

package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/reservation"
)

// A Crowd is a set of submitters that want more slots than there are. Each submits one job after the
// other, without a pause, until the time is over.
type Crowd struct {
	Seed       uint64
	Submitters int
	Peers      int
	Slots      int           // per peer
	Demand     float64       // ratio of the slots that all jobs want together to the slots that exist
	Replicas   int           // per rank
	Run        time.Duration // mean length of a job, exponentially distributed
	RTT        time.Duration
	Silent     float64       // share of peers with the fault Silent
	Dead       float64       // share of peers with the fault Dead
	Crash      time.Duration // mean time after which a submitter is killed and restarts, or 0 for never
	For        time.Duration // time in which submitters submit
	Warmup     time.Duration // initial part of For that is not measured
}

// Durations of the parts of a job that this simulation does not model.
const (
	discovering = 350 * time.Millisecond // search that finds enough offers: two round trips, and the grace period
	exhausting  = 3 * time.Second        // search that finds too few: lasts until silent peers time out
	staging     = 2 * time.Second        // mean
	noticing    = 5 * time.Second        // until peers notice that a job's submitter has disappeared
)

// A JobRecord is the result of one job.
type JobRecord struct {
	Submitter int
	Slots     int
	Waited    time.Duration // time from submission until all its slots were confirmed
	Attempts  int
	Ran       bool // false if it was killed with its submitter or was still waiting at the end
}

// An Outcome is the result of a crowd.
type Outcome struct {
	Jobs        []JobRecord // jobs that ended after the warm-up
	Utilisation float64     // share of the answering peers' slots that ran processes, over the measured time
	Held        float64     // share of slots that neither ran processes nor were free
	Leaked      int         // slots still taken when all jobs have ended and all leases are over
	Violations  []Violation
}

// Play runs the crowd. It must be called in a testing/synctest bubble.
func (c Crowd) Play() Outcome {
	p := &play{Crowd: c, world: newWorld(c.RTT, c.peers()...)}
	ctx, cancel := context.WithTimeout(context.Background(), c.For)
	defer cancel()
	began := time.Now()
	p.measureFrom = began.Add(c.Warmup)
	var wg sync.WaitGroup
	for i := range c.Submitters {
		wg.Go(func() { p.submit(ctx, i) })
	}
	use := p.observe(ctx)
	wg.Wait()
	time.Sleep(reservation.ConfirmedLease + reservation.HoldBase + time.Duration(c.Peers*c.Slots)*reservation.HoldPerSlot)
	p.world.Observe()
	left := p.world.use()
	use.Jobs, use.Leaked, use.Violations = p.jobs, left.Total-left.Free, p.world.History().Check()
	return use
}

// peers returns the peers, with the faulty ones at random places.
func (c Crowd) peers() []*Peer {
	rnd := rand.New(rand.NewPCG(c.Seed, 0))
	dead, silent := int(c.Dead*float64(c.Peers)+0.5), int(c.Silent*float64(c.Peers)+0.5)
	ps := make([]*Peer, c.Peers)
	for place, i := range rnd.Perm(c.Peers) {
		ps[i] = &Peer{ID: p2ppeer.ID(fmt.Sprintf("peer%03d", i)), Limits: reservation.Limits{Slots: c.Slots}}
		switch {
		case place < dead:
			ps[i].Fault = Dead
		case place < dead+silent:
			ps[i].Fault = Silent
		}
	}
	return ps
}

// Hold measures how long one submitter takes to reserve slots for n ranks while all of the crowd's peers
// are free. It must be called in a testing/synctest bubble.
func (c Crowd) Hold(n int) (time.Duration, error) {
	w := newWorld(c.RTT, c.peers()...)
	ctx := context.Background()
	began := time.Now()
	_, err := reservation.Reserve(ctx, w.Submitter(ctx, "submitter"), w.offers(w.ids()), reservation.Need{Job: "job", N: n, R: c.Replicas})
	return time.Since(began), err
}

// A play is a running crowd.
type play struct {
	Crowd
	world       *World
	measureFrom time.Time

	mu   sync.Mutex
	jobs []JobRecord
}

// observe samples the use of the slots every second after the warm-up.
func (p *play) observe(ctx context.Context) (o Outcome) {
	var sum Use
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			o.Utilisation = float64(sum.Running) / float64(max(1, sum.Total))
			o.Held = float64(sum.Total-sum.Running-sum.Free) / float64(max(1, sum.Total))
			return o
		case <-tick.C:
		}
		if time.Now().Before(p.measureFrom) {
			continue
		}
		u := p.world.use()
		sum = Use{sum.Total + u.Total, sum.Running + u.Running, sum.Free + u.Free}
	}
}

// submit runs submitter i until ctx ends. After a kill, the submitter restarts with the same identity and
// without knowledge of its jobs.
func (p *play) submit(ctx context.Context, i int) {
	rnd := rand.New(rand.NewPCG(p.Seed, uint64(i)+1))
	order := p.world.ids()
	rnd.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] }) // each submitter has its own order of distances
	draw := p.wishes(i)
	for number := 0; ctx.Err() == nil; number++ {
		w := draw()
		life, kill := w.life()
		s := p.world.Submitter(life, p2ppeer.ID(fmt.Sprintf("submitter%02d", i)))
		need := reservation.Need{Job: fmt.Sprintf("%d/%d", i, number), N: w.ranks, R: p.Replicas}
		r := JobRecord{Submitter: i, Slots: need.N * need.R}
		p.job(ctx, s, need, w, order, rnd, &r)
		kill()
		if !time.Now().Before(p.measureFrom) {
			p.mu.Lock()
			p.jobs = append(p.jobs, r)
			p.mu.Unlock()
		}
	}
}

// A wish is a job without slots.
type wish struct {
	ranks        int
	staging, run time.Duration
	killed       time.Duration // time after which its submitter is killed, or 0 for never
}

// wishes returns a function that draws the jobs of submitter i in turn. They are the same in every crowd
// with the same seed and parameters, however long they wait.
func (c Crowd) wishes(i int) func() wish {
	rnd := rand.New(rand.NewPCG(c.Seed, 1<<32+uint64(i)))
	exp := func(mean time.Duration) time.Duration { return time.Duration(rnd.ExpFloat64() * float64(mean)) }
	mean := c.Demand * float64(c.Peers*c.Slots) / float64(c.Submitters*c.Replicas)
	return func() wish {
		return wish{
			ranks:   max(1, int(mean*(0.25+1.5*rnd.Float64())+0.5)), // from 0.25 to 1.75 times the mean
			staging: exp(staging), run: exp(c.Run), killed: exp(c.Crash),
		}
	}
}

// life returns a context that ends when the submitter is killed.
func (w wish) life() (context.Context, context.CancelFunc) {
	if w.killed == 0 {
		return context.WithCancel(context.Background())
	}
	return context.WithTimeout(context.Background(), w.killed)
}

// job waits for slots and runs.
func (p *play) job(ctx context.Context, s *Submitter, need reservation.Need, w wish, order []p2ppeer.ID, rnd *rand.Rand, r *JobRecord) {
	began := time.Now()
	reserved := p.reserve(ctx, s, need, order, rnd, r)
	r.Waited = time.Since(began)
	if reserved == nil {
		return
	}
	if !pause(s.killed, w.staging) {
		return // its leases expire
	}
	defer p.end(s, reserved)
	for _, err := range p.start(s, reserved) {
		if err != nil {
			return
		}
	}
	r.Ran = pause(s.killed, w.run)
}

// reserve does what p2prun does: it waits in the queues of peers until it has all its slots, and searches
// for other candidates meanwhile.
func (p *play) reserve(ctx context.Context, s *Submitter, need reservation.Need, order []p2ppeer.ID, rnd *rand.Rand, r *JobRecord) *reservation.Reservation {
	need.Since, need.Waits = time.Now(), true
	candidates, enough := p.candidates(need, order, true)
	if !pause(s.killed, took(enough)) {
		return nil
	}
	for looked := time.Now(); ctx.Err() == nil && s.killed.Err() == nil; r.Attempts++ {
		if time.Since(looked) >= took(false)+reservation.Freshness(time.Since(need.Since)) {
			found, _ := p.candidates(need, order, false)
			candidates = reservation.Remember(found, candidates)
			looked = time.Now()
		}
		reserved, err := reservation.Reserve(s.killed, s, candidates, need)
		if err == nil {
			return reserved
		}
		var place reservation.Place
		if short, ok := errors.AsType[*reservation.ShortageError](err); ok {
			place, need.Waits = short.Place, !short.Hopeless
			short.Unheard(candidates)
		}
		pause(s.killed, reservation.Pause(r.Attempts, place, rnd))
	}
	if s.killed.Err() == nil {
		leaving, cancel := context.WithTimeout(s.killed, discovering)
		defer cancel()
		reservation.Leave(leaving, s, need.Job, order)
	}
	return nil
}

// took returns how long the search for candidates takes.
func took(enough bool) time.Duration {
	if enough {
		return discovering
	}
	return exhausting
}

// candidates returns what discovery finds: the nearest answering peers, until they have enough free slots
// including the overbooking. enough reports whether they suffice. A job's first search also finds silent
// and dead peers, as if they had failed just now.
func (p *play) candidates(need reservation.Need, order []p2ppeer.ID, first bool) (found []reservation.Candidate, enough bool) {
	slots := 0
	for _, c := range p.world.offers(order) {
		sound := p.world.peers[c.Peer].Fault == None
		if sound || first {
			found = append(found, c)
		}
		if sound {
			slots += min(c.Slots, need.N)
		}
		if slots >= need.N*need.R*3/2 {
			break
		}
	}
	return found, slots >= need.N*need.R
}

// start starts the processes at all peers at once.
func (p *play) start(s *Submitter, reserved *reservation.Reservation) []error {
	errs := make([]error, len(reserved.Placements))
	ctx, cancel := context.WithTimeout(context.Background(), exhausting)
	defer cancel()
	var wg sync.WaitGroup
	for i, pl := range reserved.Placements {
		wg.Go(func() { errs[i] = s.Start(ctx, pl.Peer, reserved.Job, pl.Key) })
	}
	wg.Wait()
	return errs
}

// end reports to the peers that a job's processes have ended, which releases their slots.
func (p *play) end(s *Submitter, reserved *reservation.Reservation) {
	if s.killed.Err() != nil {
		time.Sleep(noticing)
	}
	for _, pl := range reserved.Placements {
		p.world.Gone(pl.Peer, pl.Key)
	}
}

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

package job

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A search is a job's way to its slots: attempts until one succeeds, or the time is over. In
// between the job waits in the queues of peers.
type search struct {
	j          *run
	deadline   time.Time
	candidates []reservation.Candidate
	considered considered
	looked     time.Time               // when these were found; zero: never
	asked      map[p2ppeer.ID]struct{} // ever, so that they can be told that the job no longer waits
}

// lookAgain is how long candidates are good for: their offers are hints anyway, and those that
// have come since are worth a look.
const lookAgain = 5 * time.Second

// reserve finds and holds the job's slots, trying again until deadline. It
// returns a reservation, or why there is none.
func (j *run) reserve(ctx context.Context, deadline time.Time) (*reservation.Reservation, *Result) {
	s := &search{j: j, deadline: deadline, asked: make(map[p2ppeer.ID]struct{})}
	rnd := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	for attempt := 0; ; attempt++ {
		reserved, short, err := s.attempt(ctx)
		if err == nil {
			return reserved, nil
		}
		left := time.Until(deadline)
		if ctx.Err() == nil && left <= 0 {
			s.leave(ctx)
			return nil, j.shortage(s.considered, err)
		}
		var place reservation.Place
		if short != nil {
			place = short.Place
			j.waiting(short, left)
		}
		select {
		case <-time.After(min(left, reservation.Pause(attempt, place, rnd))):
		case <-ctx.Done():
			s.leave(ctx)
			r := stoppedBy(ctx, j.req)
			return nil, &r
		}
	}
}

// attempt looks for candidates, unless those that it has are fresh, and asks them for slots
// once. A shortage is told as such, too.
func (s *search) attempt(ctx context.Context) (*reservation.Reservation, *reservation.ShortageError, error) {
	j := s.j
	if err := s.look(ctx); err != nil {
		return nil, nil, err
	}
	strategy, err := reservation.ParseStrategy(j.req.Strategy)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range s.candidates {
		s.asked[c.Peer] = struct{}{}
	}
	// Slots whose holder does not hear the answer stay held until the lease ends,
	// so the user's impatience does not end the asking at once (S4).
	asking, cancel := lingering(ctx, j.s.waits.answers)
	defer cancel()
	reserved, err := reservation.Reserve(asking, j.s.holder, s.candidates, reservation.Need{
		Job: j.spec.ID, N: j.req.N, R: j.req.R, Strategy: strategy,
		Since: j.spec.Created, Waits: time.Now().Before(s.deadline),
	})
	if short, ok := errors.AsType[*reservation.ShortageError](err); ok {
		s.considered = s.considered.with(short)
		return nil, short, err
	}
	if err != nil {
		return nil, nil, err
	}
	want := int64(j.req.N * j.req.R)
	j.phase(Reserving, want, want)
	return reserved, nil, nil
}

// look finds candidates.
func (s *search) look(ctx context.Context) error {
	if !s.looked.IsZero() && time.Since(s.looked) < lookAgain {
		return nil
	}
	j := s.j
	want := j.req.N * j.req.R
	if s.looked.IsZero() {
		j.phase(Discovering, 0, int64(want))
	}
	found, passed, err := j.s.cfg.Discovery.Candidates(ctx, discovery.Need{
		Slots: want, PerPeer: j.req.N, Busy: true, Filter: j.req.Filter,
	})
	if err != nil {
		return err
	}
	s.considered = newConsidered(passed)
	s.candidates = j.eligible(found, s.considered)
	if s.looked.IsZero() {
		j.phase(Reserving, 0, int64(want))
	}
	s.looked = time.Now()
	return context.Cause(ctx)
}

// leave has the job leave the queues of all peers that were ever asked.
func (s *search) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.j.s.waits.answers)
	defer cancel()
	peers := make([]p2ppeer.ID, 0, len(s.asked))
	for p := range s.asked {
		peers = append(peers, p)
	}
	slices.Sort(peers)
	reservation.Leave(ctx, s.j.s.holder, s.j.spec.ID, peers)
}

// lingering returns a context that ends some time after ctx does.
func lingering(ctx context.Context, longer time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		defer cancel()
		select {
		case <-time.After(longer):
		case <-late.Done():
		}
	})
	return late, func() {
		stop()
		cancel()
	}
}

// eligible returns the candidates that can run the program, and notes why the others cannot.
func (j *run) eligible(found []discovery.Candidate, why considered) []reservation.Candidate {
	var out []reservation.Candidate
	for _, c := range found {
		id := c.AddrInfo.ID
		if _, ok := j.spec.Program(c.Offer.OS, c.Offer.Arch); !ok {
			why[id] = verdict{Platforms, c.Offer.OS + "/" + c.Offer.Arch}
			continue
		}
		if j.excluded[id] {
			why[id] = verdict{Unfit, ""}
			continue
		}
		j.s.cfg.Host.Peerstore().AddAddrs(id, c.AddrInfo.Addrs, time.Hour)
		out = append(out, reservation.Candidate{
			Peer: id, Slots: c.Offer.Free(), Total: c.Offer.SlotsTotal,
			Speed: effectiveSpeed(c.Offer), RTT: c.RTT, Domain: j.domain(c),
		})
	}
	return out
}

// effectiveSpeed is what is left of a peer's speed beside what its machine does already.
func effectiveSpeed(o discovery.Offer) int { return int(float64(o.Speed) / (1 + o.Load)) }

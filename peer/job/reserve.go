package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// reserve finds and holds the job's slots, trying again until deadline. It
// returns a reservation, or why there is none.
func (j *run) reserve(ctx context.Context, deadline time.Time) (*reservation.Reservation, *Result) {
	rnd := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	for attempt := 0; ; attempt++ {
		j.phase(Discovering, 0, int64(j.req.N*j.req.R))
		reserved, err := j.attempt(ctx)
		if err == nil {
			return reserved, nil
		}
		left := time.Until(deadline)
		if ctx.Err() == nil && left <= 0 {
			return nil, j.shortage(err)
		}
		select {
		case <-time.After(min(left, reservation.Backoff(attempt, rnd))):
		case <-ctx.Done():
			r := stoppedBy(ctx, j.req)
			return nil, &r
		}
	}
}

// shortageError is an attempt that found too few slots, with what discovery
// said of the peers that were not even asked.
type shortageError struct {
	found, peers int
	why          map[string]int // peers by reason
}

func (e *shortageError) Error() string { return fmt.Sprintf("found %d slots", e.found) }

// attempt looks for candidates once and asks them for slots.
func (j *run) attempt(ctx context.Context) (*reservation.Reservation, error) {
	want := j.req.N * j.req.R
	found, considered, err := j.s.cfg.Discovery.Candidates(ctx, discovery.Need{Slots: want, PerPeer: j.req.N, Filter: j.req.Filter})
	if err != nil {
		return nil, err
	}
	why := make(map[string]int)
	for _, c := range considered {
		if c.Reason != discovery.OffersNothing {
			why[c.Reason.String()]++
		}
	}
	candidates := j.eligible(found, why)
	j.phase(Reserving, 0, int64(want))
	strategy, err := reservation.ParseStrategy(j.req.Strategy)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	need := reservation.Need{Job: j.spec.ID, N: j.req.N, R: j.req.R, Strategy: strategy}
	// Slots whose holder does not hear the answer stay held until the lease ends,
	// so the user's impatience does not end the asking at once (S4).
	asking, cancel := lingering(ctx, j.s.waits.answers)
	defer cancel()
	reserved, err := reservation.Reserve(asking, j.s.holder, candidates, need)
	var short *reservation.ShortageError
	if errors.As(err, &short) {
		for reason, n := range short.Reasons {
			why[reason.String()] += n
		}
		return nil, &shortageError{found: short.FoundSlots, peers: short.FoundPeers, why: why}
	}
	if err == nil {
		j.phase(Reserving, int64(want), int64(want))
	}
	return reserved, err
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

// eligible returns the candidates that can run the program, and counts the
// others in why.
func (j *run) eligible(found []discovery.Candidate, why map[string]int) []reservation.Candidate {
	var out []reservation.Candidate
	for _, c := range found {
		if _, ok := j.spec.Program(c.Offer.OS, c.Offer.Arch); !ok {
			why["other platform"]++
			continue
		}
		if j.excluded[c.AddrInfo.ID] {
			why["could not run it"]++
			continue
		}
		j.s.cfg.Host.Peerstore().AddAddrs(c.AddrInfo.ID, c.AddrInfo.Addrs, time.Hour)
		out = append(out, reservation.Candidate{Peer: c.AddrInfo.ID, Slots: c.Offer.SlotsFree})
	}
	return out
}

// shortage says that there are not enough slots, and what could help.
func (j *run) shortage(err error) *Result {
	var short *shortageError
	if !errors.As(err, &short) {
		return &Result{Status: StatusShortage, Message: fmt.Sprintf("no slots: %v", err), Hint: hintMorePeers}
	}
	text := fmt.Sprintf("found %d of the %d slots needed (-n %d -r %d) within %v",
		short.found, j.req.N*j.req.R, j.req.N, j.req.R, j.req.Wait)
	if short.peers > 0 && short.peers < j.req.R {
		text = fmt.Sprintf("found slots on %d peers within %v: the %d replicas of a rank (-r) must be on different peers",
			short.peers, j.req.Wait, j.req.R)
	}
	if len(short.why) > 0 {
		text += "; passed over: " + counts(short.why)
	}
	return &Result{Status: StatusShortage, Message: text, Hint: hintMorePeers}
}

const hintMorePeers = "boot more peers with p2pboot, wait longer with -w, or lower -n or -r"

// counts writes "3 busy, 1 silent", the most frequent first.
func counts(why map[string]int) string {
	keys := slices.SortedFunc(maps.Keys(why), func(a, b string) int {
		return cmp.Or(cmp.Compare(why[b], why[a]), strings.Compare(a, b))
	})
	var parts []string
	for _, k := range keys {
		parts = append(parts, fmt.Sprintf("%d %s", why[k], k))
	}
	return strings.Join(parts, ", ")
}

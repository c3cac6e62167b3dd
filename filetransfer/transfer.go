package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
)

const (
	// maxFailures is how many consecutive streams may break without a unit, over at least outageTimeout,
	// before the origin is given up. The origin is not given up while members supply units.
	maxFailures = 5
	// maxMemberFailures is the same bound for a member, which may start some seconds later than this peer.
	maxMemberFailures = 9
	// maxDoublings bounds the pause between two streams: 3.2 s.
	maxDoublings = 5
	// tickEvery is the interval between ticks of a plan.
	tickEvery = 250 * time.Millisecond
)

// A transfer fills one claim from the origin and the members.
type transfer struct {
	svc      *Service
	from     p2ppeer.ID   // the origin
	members  []p2ppeer.ID // source i+1 of the plan is members[i]
	near     []p2ppeer.ID // members at this peer's site
	job      string
	id       Digest // identifies list
	list     []Want
	units    []unit
	claim    *claim
	share    *share // nil if the list is not shared
	progress func(int64)

	begun  time.Time
	finish context.CancelFunc

	disk sync.Mutex // held while a part is written; locked before mu

	mu      sync.Mutex
	plan    *plan
	streams map[int]*stream
	// Modified only with both disk and mu held.
	mine  map[int]bool   // incomplete contents of the claim, as indices into list
	there map[int]bitset // for those of several pieces, the pieces that are present
}

// A brokenError reports the end of a stream that another stream may replace.
type brokenError struct{ error }

func (e brokenError) Unwrap() error { return e.error }

func (t *transfer) run(ctx context.Context) error {
	done, err := t.prepare(ctx)
	if err != nil {
		return err
	}
	t.begun, t.streams = time.Now(), map[int]*stream{}
	t.plan = newPlan(len(t.units), done, len(t.members), rand.Uint64(), 0)
	if t.plan.complete() {
		return nil
	}
	t.place()
	g, ctx := errgroup.WithContext(ctx)
	ctx, t.finish = context.WithCancel(ctx)
	defer t.finish()
	g.Go(func() error { return t.follow(ctx, origin, t.from) })
	for i, p := range t.members {
		g.Go(func() error {
			t.giveUp(p, t.follow(ctx, i+1, p))
			return nil
		})
	}
	g.Go(func() error { t.tick(ctx); return nil })
	if err := g.Wait(); !t.complete() {
		return err
	}
	return nil // only the origin was unreachable
}

// place tells the plan which members are at this peer's site.
func (t *transfer) place() {
	near := map[int]uint64{}
	for i, p := range t.members {
		if slices.Contains(t.near, p) {
			near[i+1] = siteKey(p)
		}
	}
	t.plan.place(siteKey(t.svc.host.ID()), near)
}

// otherSite reports whether some members are at this peer's site and p is not. The link to p may then be
// slow and shared with the rest of the site.
func (t *transfer) otherSite(p p2ppeer.ID) bool {
	return len(t.near) > 0 && !slices.Contains(t.near, p)
}

// giveUp records that a peer is no longer a source, and logs the reason.
func (t *transfer) giveUp(p p2ppeer.ID, err error) {
	t.mu.Lock()
	t.plan.givenUp()
	t.mu.Unlock()
	level := zerolog.DebugLevel
	if errors.As(err, new(wrongError)) {
		level = zerolog.WarnLevel
	}
	if err != nil {
		t.svc.log.WithLevel(level).Err(err).Stringer("peer", p).Str("job", t.job).Msg("peer dropped as a source")
	}
}

// prepare determines which units are present, and shares the present units of partial contents.
func (t *transfer) prepare(ctx context.Context) (done bitset, err error) {
	index := make(map[Digest]int, len(t.list))
	for i, w := range t.list {
		index[w.Digest] = i
	}
	t.mine, t.there = map[int]bool{}, map[int]bitset{}
	for _, w := range t.claim.wants {
		i := index[w.Digest]
		t.mine[i] = true
		if pieces(w.Size) > 1 {
			if t.there[i], err = t.readBack(ctx, w); err != nil {
				return nil, err
			}
		}
	}
	done = newBitset(len(t.units))
	for u, unit := range t.units {
		if len(t.lacking(unit)) == 0 {
			done.add(u)
		}
		if there, large := t.there[unit.first]; large && there.has(unit.piece) {
			t.share.add(u)
		}
	}
	return done, nil
}

// readBack returns which pieces of a content are present. If all pieces are, readBack completes the content
// in the store.
func (t *transfer) readBack(ctx context.Context, w Want) (bitset, error) {
	if !t.claim.begun[w.Digest] {
		return newBitset(pieces(w.Size)), nil
	}
	there, err := t.claim.readBack(ctx, w)
	if err == nil && there.count() == pieces(w.Size) {
		err = t.claim.complete(w)
	}
	return there, err
}

// lacking returns the contents of a unit that have to be requested. It is called before the first stream
// starts, or with mu held.
func (t *transfer) lacking(u unit) (contents []int) {
	for i := u.first; i < u.first+u.count; i++ {
		if there, large := t.there[i]; t.mine[i] && !(large && there.has(u.piece)) {
			contents = append(contents, i)
		}
	}
	return contents
}

// follow opens streams to a source, one after the other, until everything is complete. The error is the
// reason why the source is given up.
func (t *transfer) follow(ctx context.Context, id int, p p2ppeer.ID) error {
	limit := maxFailures
	if id != origin {
		limit = maxMemberFailures
	}
	came := time.Now() // time of the last unit, or the start
	for failures := 0; ; {
		st := &stream{t: t, id: id, peer: p}
		err := st.run(ctx)
		switch {
		case t.complete():
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.As(err, new(brokenError)):
			return err
		}
		if failures++; st.units > 0 {
			failures, came = 1, time.Now()
		}
		if failures >= limit && (id != origin || time.Since(came) >= t.svc.cut && !t.supplied()) {
			return fmt.Errorf("gave up after %d attempts: %w", failures, err)
		}
		t.svc.log.Debug().Err(err).Stringer("peer", p).Str("job", t.job).Msg("transfer interrupted, resuming")
		if err := pause(ctx, t.svc.backoff<<min(failures-1, maxDoublings)); err != nil {
			return err
		}
	}
}

// supplied reports whether members may supply more units.
func (t *transfer) supplied() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.plan.supplied(t.now())
}

// pause waits for a random time from d/2 to 3d/2, because both sides may retry. If ctx ends first, pause
// returns its error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *transfer) complete() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.plan.complete()
}

func (t *transfer) now() time.Duration { return time.Since(t.begun) }

// tick advances the plan's time until ctx ends.
func (t *transfer) tick(ctx context.Context) {
	for pause(ctx, tickEvery) == nil {
		t.mu.Lock()
		t.plan.tick(t.now())
		t.askAll()
		t.mu.Unlock()
	}
}

// askAll makes every stream send the requests that it can. The caller holds mu.
func (t *transfer) askAll() {
	for _, st := range t.streams {
		t.ask(st)
	}
}

// ask makes a stream send the requests that it can. The caller holds mu.
func (t *transfer) ask(st *stream) {
	for {
		u, fresh, ok := t.plan.next(st.id, t.now())
		if !ok {
			return
		}
		lacking := t.lacking(t.units[u])
		if len(lacking) == 0 { // the parts of this unit arrived from two sources
			t.plan.found(st.id)
			t.has(u)
			continue
		}
		st.request(u, t.units[u].piece, fresh, lacking)
	}
}

// has records that a unit is present. The caller holds mu.
func (t *transfer) has(u int) {
	t.share.add(u)
	if t.plan.complete() {
		t.finish()
	}
}

// write writes a verified part of a unit to its place, unless the part is present.
func (t *transfer) write(u unit, content int, b []byte) error {
	t.disk.Lock()
	defer t.disk.Unlock()
	w := t.list[content]
	there, large := t.there[content]
	if !t.mine[content] || large && there.has(u.piece) {
		return nil
	}
	if err := t.claim.write(w, u.piece, b); err != nil {
		return err
	}
	if t.progress != nil && len(b) > 0 {
		t.progress(int64(len(b)))
	}
	last := !large || there.count() == pieces(w.Size)-1
	if last {
		if err := t.claim.complete(w); err != nil {
			return err
		}
		t.svc.counts.filesReceived.Add(1)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if large {
		there.add(u.piece)
	}
	if last {
		delete(t.mine, content)
	}
	return nil
}

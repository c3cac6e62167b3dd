package faultdetect

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/faultdetect/internal/pb"
)

// maxBeats is how many messages a member of a group of n may send in a period:
// a table, questions, answers, and what a stall of several periods has piled up;
// and when many fail at once, an accusation of each along each tree.
func maxBeats(n int) int { return 200 + 2*n }

var errFlood = errors.New("too many messages in a period")

// A Group is this peer's membership in the failure detection of one job.
type Group struct {
	service *Service
	job     string
	peers   []p2ppeer.ID
	self    int
	period  time.Duration
	verdict func(Verdict)
	log     zerolog.Logger

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // run, the writers and the readers
	inbox  chan Message
	wake   chan struct{} // reported has grown

	mu       sync.Mutex // also held to end ctx
	reported []report
	inbound  map[int]network.Stream // one per member

	// Only run touches these.
	start    time.Time
	detector *Detector
	writers  map[int]*writer
}

func newGroup(s *Service, c GroupConfig, d *Detector) *Group {
	g := &Group{
		service: s, job: c.Job, peers: slices.Clone(c.Members), self: c.Self,
		period: c.Period, verdict: c.Verdict,
		log:      s.log.With().Str("job", c.Job).Logger(),
		inbox:    make(chan Message, 64),
		wake:     make(chan struct{}, 1),
		inbound:  map[int]network.Stream{},
		detector: d,
		writers:  map[int]*writer{},
	}
	g.ctx, g.cancel = context.WithCancel(s.ctx)
	g.wg.Go(func() { g.run(time.Now()) }) // ends with ctx
	return g
}

func (g *Group) index(p p2ppeer.ID) int { return slices.Index(g.peers, p) }

// Report says that member p seems to be silent, for instance because a
// connection to it closed. It is asked directly, and failed unless it answers
// within a period. Report does not block.
func (g *Group) Report(p p2ppeer.ID) { g.report(report{member: g.index(p)}) }

// Silent says that member p has been silent for some time, by what the caller knows. It is asked, and
// failed unless it answers within a period, or what is left of the tolerated hang. Silent does not block.
func (g *Group) Silent(p p2ppeer.ID, since time.Duration) {
	g.report(report{member: g.index(p), silent: since})
}

// Gone says that member p is known to have failed, for instance because the
// stream ended by which its job was controlled. The other members are told, and
// ask it themselves. Gone does not block.
func (g *Group) Gone(p p2ppeer.ID) { g.report(report{member: g.index(p), gone: true}) }

// A report is what the outside says of a member.
type report struct {
	member int
	gone   bool
	silent time.Duration // 0: not known
}

func (g *Group) report(r report) {
	if r.member < 0 {
		return
	}
	g.mu.Lock()
	if !slices.Contains(g.reported, r) {
		g.reported = append(g.reported, r)
	}
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// Close leaves the group; to the others this peer is then silent. It returns
// when nothing of the group runs any more, the Verdict function included.
func (g *Group) Close() {
	g.mu.Lock() // so that admit adds no reader once we wait
	g.cancel()
	g.mu.Unlock()
	g.wg.Wait()
	g.service.mu.Lock()
	defer g.service.mu.Unlock()
	if g.service.groups[g.job] == g {
		delete(g.service.groups, g.job)
	}
}

// run owns the detector: it brings it events and carries out what it says.
func (g *Group) run(start time.Time) {
	g.start = start
	ticker := time.NewTicker(g.period / TicksPerPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case m := <-g.inbox:
			g.receive(m)
		case <-g.wake:
			g.takeReports()
		case <-ticker.C:
			// What has come before the tick counts before it: nobody is failed
			// over an answer that only was not read yet.
			for range len(g.inbox) {
				g.receive(<-g.inbox)
			}
			g.carryOut(g.detector.Tick(time.Since(g.start)))
		}
	}
}

func (g *Group) receive(m Message) {
	out, err := g.detector.Receive(time.Since(g.start), m)
	if err != nil {
		g.log.Warn().Err(err).Stringer("peer", g.peers[m.From]).Msg("message refused")
	}
	g.carryOut(out)
}

func (g *Group) takeReports() {
	g.mu.Lock()
	reported := g.reported
	g.reported = nil
	g.mu.Unlock()
	for _, r := range reported {
		switch {
		case r.gone:
			g.carryOut(g.detector.Gone(r.member))
		case r.silent > 0:
			g.carryOut(g.detector.Silent(r.member, r.silent))
		default:
			g.carryOut(g.detector.Report(r.member))
		}
	}
}

func (g *Group) carryOut(out Output) {
	for _, m := range out.Send {
		w := g.writers[m.To]
		if w == nil {
			w = g.newWriter(m.To)
			g.writers[m.To] = w
		}
		w.queue.put(m)
	}
	for _, v := range out.Verdicts {
		g.log.Debug().Stringer("peer", g.peers[v.Member]).Stringer("state", v.State).Int("silence", v.Silence).Msg("verdict")
		if w := g.writers[v.Member]; v.State == Failed && w != nil {
			w.cancel()
			delete(g.writers, v.Member)
		}
		g.verdict(v)
	}
}

// read hands what a member sends on a stream to the detector. A newer stream
// of that member ends an older one.
func (g *Group) read(stream network.Stream, r *bufio.Reader, from int) error {
	if !g.admit(stream, from) {
		return context.Canceled
	}
	defer g.wg.Done()
	stop := context.AfterFunc(g.ctx, func() { _ = stream.Reset() })
	defer stop()
	reader := pbio.NewDelimitedReader(r, maxBeat(len(g.peers)))
	decoder := decoder{from: from, to: g.self, n: len(g.peers)}
	for since, beats := time.Now(), 1; ; beats++ {
		var b pb.Beat
		if err := reader.ReadMsg(&b); err != nil {
			return fmt.Errorf("read from member %d: %w", from, err)
		}
		if time.Since(since) > g.period {
			since, beats = time.Now(), 1
		}
		if beats > maxBeats(len(g.peers)) {
			return fmt.Errorf("member %d: %w", from, errFlood)
		}
		m, err := decoder.decode(&b)
		if err != nil {
			return fmt.Errorf("decode message of member %d: %w", from, err)
		}
		select {
		case g.inbox <- m:
		case <-g.ctx.Done():
			return nil
		}
	}
}

// admit makes stream the one that is read of a member. It counts as running
// until wg.Done, if the group is not closed.
func (g *Group) admit(stream network.Stream, from int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() != nil {
		return false
	}
	if old := g.inbound[from]; old != nil {
		_ = old.Reset()
	}
	g.inbound[from] = stream
	g.wg.Add(1)
	return true
}

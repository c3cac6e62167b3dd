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
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/faultdetect/internal/pb"
	"github.com/p2pmpi/p2pmpi/internal/background"
	"github.com/p2pmpi/p2pmpi/internal/peerstream"
)

// maxBeats bounds the messages that a member of a group of n may send per period: a table, questions,
// answers, and the backlog of a stall of several periods. If many members fail at once, each causes an
// accusation along each tree.
func maxBeats(n int) int { return 200 + 2*n }

var errTooMany = errors.New("too many messages in a period")

// A Group is this peer's membership in the failure detection of one job.
type Group struct {
	service *Service
	job     string
	peers   []p2ppeer.ID
	self    int
	period  time.Duration
	verdict func(Verdict)
	log     zerolog.Logger

	ctx    context.Context // cancelled by Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // counts run, the writers and the readers
	inbox  chan Message
	wake   chan struct{} // signals that reported has grown

	mu       sync.Mutex // also held while ctx is cancelled
	reported []report
	inbound  map[int]network.Stream // one per member

	// Used only by run.
	start    time.Time
	detector *Detector
	writers  map[int]writer
}

// A writer sends messages to one member, until cancel is called or the group is closed.
type writer struct {
	*peerstream.Writer[Message]
	cancel context.CancelFunc
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
		writers:  map[int]writer{},
	}
	g.ctx, g.cancel = context.WithCancel(s.work.Context())
	g.wg.Go(func() { g.run(time.Now()) }) // ends with ctx
	return g
}

func (g *Group) index(p p2ppeer.ID) int { return slices.Index(g.peers, p) }

// Report records that member p seems to be silent, for instance because a connection to it closed. The
// detector asks it directly, and fails it if it does not answer in time; see Detector.Report. Report does
// not block.
func (g *Group) Report(p p2ppeer.ID) { g.report(report{member: g.index(p)}) }

// Silent records that member p has been silent for the given time, as far as the caller knows. The
// detector asks it, and fails it if it does not answer within a period or the rest of the tolerated hang,
// whichever is longer. Silent does not block.
func (g *Group) Silent(p p2ppeer.ID, since time.Duration) {
	g.report(report{member: g.index(p), silent: since})
}

// Gone records that member p is known to have failed, for instance because the control stream of its job
// ended. The other members are told, and ask it themselves. Gone does not block.
func (g *Group) Gone(p p2ppeer.ID) { g.report(report{member: g.index(p), gone: true}) }

// A report is information about a member from outside the group.
type report struct {
	member int
	gone   bool
	silent time.Duration // duration of the silence, or 0 if unknown
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
	background.Notify(g.wake)
}

// Close leaves the group; the other members then see this peer as silent. It returns when all goroutines
// of the group have ended, so Verdict is not called afterwards.
func (g *Group) Close() {
	g.mu.Lock() // so that admit adds no reader once Close waits
	g.cancel()
	g.mu.Unlock()
	g.wg.Wait()
	g.service.mu.Lock()
	defer g.service.mu.Unlock()
	if g.service.groups[g.job] == g {
		delete(g.service.groups, g.job)
	}
}

// run owns the detector: it passes events to it and carries out its output.
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
			// Messages that arrived before the tick are processed first, so that no member is failed
			// although its answer was only unread.
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
			g.carryOut(g.detector.gone(r.member))
		case r.silent > 0:
			g.carryOut(g.detector.Silent(r.member, r.silent))
		default:
			g.carryOut(g.detector.Report(r.member))
		}
	}
}

func (g *Group) carryOut(out Output) {
	for _, m := range out.Send {
		g.writerTo(m.To).Put(m)
	}
	for _, v := range out.Verdicts {
		g.log.Debug().Stringer("peer", g.peers[v.Member]).Stringer("state", v.State).Int("silence", v.Silence).Msg("verdict")
		if w, ok := g.writers[v.Member]; v.State == Failed && ok {
			w.cancel()
			delete(g.writers, v.Member)
		}
		g.verdict(v)
	}
}

func (g *Group) writerTo(member int) writer {
	w, ok := g.writers[member]
	if !ok {
		ctx, cancel := context.WithCancel(g.ctx)
		w = writer{cancel: cancel, Writer: peerstream.NewWriter(peerstream.Config[Message]{
			Host: g.service.host, To: g.peers[member], Protocol: Protocol,
			Hello: &pb.Hello{Job: g.job}, Timeout: g.period, Log: g.log,
			NewEncoder: newEncoder, Supersedes: supersedes,
		})}
		g.wg.Go(func() { w.Run(ctx) }) // ends with ctx: the group is closed or the member has failed
		g.writers[member] = w
	}
	return w
}

func newEncoder() func(Message) proto.Message {
	var e Encoder
	return func(m Message) proto.Message { return e.encode(m) }
}

// supersedes reports whether m has the same kind and subject as an older message. So the queue of a member
// that does not read never exceeds 4n + 3 messages.
func supersedes(m, older Message) bool {
	return m.Kind == older.Kind && m.About == older.About && m.Tree == older.Tree
}

// read passes the messages that a member sends on a stream to the detector. A newer stream of that member
// ends an older one.
func (g *Group) read(stream network.Stream, r *bufio.Reader, from int) error {
	if !g.admit(stream, from) {
		return context.Canceled
	}
	defer g.wg.Done()
	defer context.AfterFunc(g.ctx, func() { _ = stream.Reset() })()
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
			return fmt.Errorf("member %d: %w", from, errTooMany)
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

// admit makes stream the current inbound stream of a member and adds its reader to wg. It returns false
// if the group is closed.
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

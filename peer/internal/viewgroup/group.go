package viewgroup

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
)

// maxRate is how many messages a peer may send in a second: many times what it
// needs while a view changes.
const maxRate = 2000

var errFlood = errors.New("too many messages in a second")

// A Group is this peer's part in agreeing on the views of one job.
type Group struct {
	service *Service
	config  GroupConfig
	log     zerolog.Logger

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // run, the writers and the readers
	inbox  chan received
	wake   chan struct{} // gone or proposed has grown

	mu       sync.Mutex             // also held to end ctx
	gone     []int                  // peers, not told to the member yet
	proposed []Change               // likewise
	inbound  map[int]network.Stream // one per peer
	votes    []bool                 // by peer, as far as the member knows
	silences []int                  // by peer, in ticks, likewise
	contact  Contact                // likewise

	// Only run touches these.
	member  *Member
	writers map[int]*writer
}

// received is a message and the peer that it came from.
type received struct {
	from int
	msg  *Message
}

func newGroup(s *Service, c GroupConfig, m *Member) *Group {
	g := &Group{
		service: s, config: c, member: m,
		log:     s.log.With().Str("job", c.Job).Logger(),
		inbox:   make(chan received, 64),
		wake:    make(chan struct{}, 1),
		inbound: make(map[int]network.Stream),
		writers: make(map[int]*writer),
		votes:   make([]bool, len(c.Peers)), silences: make([]int, len(c.Peers)),
	}
	for i := range g.votes {
		g.votes[i] = m.Votes(i)
	}
	g.ctx, g.cancel = context.WithCancel(s.ctx)
	g.wg.Go(g.run) // ends with ctx
	return g
}

// Propose asks for a change of the view, again and again until it is committed. It
// does not block.
func (g *Group) Propose(c Change) {
	g.mu.Lock()
	g.proposed = append(g.proposed, c)
	g.mu.Unlock()
	g.ring()
}

// Gone says that a peer has left the job for good. It does not block, and what is
// proposed after it comes after it.
func (g *Group) Gone(p p2ppeer.ID) {
	i := slices.Index(g.config.Peers, p)
	if i < 0 {
		return // it has come later
	}
	g.mu.Lock()
	g.gone = append(g.gone, i)
	g.mu.Unlock()
	g.ring()
}

// Votes reports whether a peer votes on the views: were it to leave at once, and others
// with it, the majority might be gone.
func (g *Group) Votes(p p2ppeer.ID) bool {
	i := slices.Index(g.config.Peers, p)
	g.mu.Lock()
	defer g.mu.Unlock()
	return i >= 0 && g.votes[i]
}

// Silence returns for how long a peer has not answered this one, if it leads the group
// and is in touch with the majority: else nobody's silence means anything, and it is 0.
// ok is false for a peer that is not of the group.
func (g *Group) Silence(p p2ppeer.ID) (d time.Duration, ok bool) {
	i := slices.Index(g.config.Peers, p)
	if i < 0 {
		return 0, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Duration(g.silences[i]) * TickPeriod, true
}

// Contact returns how this peer stands to the majority.
func (g *Group) Contact() Contact {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.contact
}

// ring wakes run.
func (g *Group) ring() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// Close leaves the group; to the others this peer is then silent. It returns when
// nothing of the group runs any more, its functions included.
func (g *Group) Close() {
	g.mu.Lock() // so that admit adds no reader once we wait
	g.cancel()
	g.mu.Unlock()
	g.wg.Wait()
	g.service.mu.Lock()
	defer g.service.mu.Unlock()
	if g.service.groups[g.config.Job] == g {
		delete(g.service.groups, g.config.Job)
	}
}

// run owns the member: it brings it events and carries out what it says.
func (g *Group) run() {
	ticker := time.NewTicker(TickPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case r := <-g.inbox:
			g.receive(r)
		case <-g.wake:
			g.takeTold()
		case <-ticker.C:
			// What has come before the tick counts before it.
			for range len(g.inbox) {
				g.receive(<-g.inbox)
			}
			g.carryOut(g.member.Tick())
			g.notice()
		}
	}
}

// takeTold brings the member what the owner has said.
func (g *Group) takeTold() {
	g.mu.Lock()
	gone, proposed := g.gone, g.proposed
	g.gone, g.proposed = nil, nil
	g.mu.Unlock()
	for _, peer := range gone {
		g.carryOut(g.member.Gone(peer))
	}
	for _, c := range proposed {
		g.carryOut(g.member.Propose(c))
	}
}

func (g *Group) receive(r received) {
	out, err := g.member.Step(r.from, r.msg)
	if err != nil {
		g.log.Warn().Err(err).Stringer("peer", g.config.Peers[r.from]).Msg("message about views refused")
	}
	g.carryOut(out)
}

// notice tells the owner when this peer is not in touch with the majority any more, and
// when it is again.
func (g *Group) notice() {
	contact := g.member.Contact()
	g.mu.Lock()
	before := g.contact
	g.contact = contact
	g.mu.Unlock()
	if contact != before {
		g.config.Contact(contact)
	}
}

func (g *Group) carryOut(out Output) {
	g.mu.Lock()
	for i := range g.votes {
		g.votes[i], g.silences[i] = g.member.Votes(i), g.member.Silence(i)
	}
	g.mu.Unlock()
	for _, m := range out.Send {
		to := int(m.GetTo()) - 1
		w := g.writers[to]
		if w == nil {
			w = g.newWriter(to)
			g.writers[to] = w
		}
		w.put(m)
	}
	for _, c := range out.Committed {
		g.log.Debug().Uint64("epoch", c.View.Epoch).Stringer("change", c.Change).Msg("view agreed")
		g.config.Committed(c)
	}
}

// read hands what a peer sends on a stream to the member. A newer stream of that
// peer ends an older one.
func (g *Group) read(stream network.Stream, r *bufio.Reader, from int) error {
	if !g.admit(stream, from) {
		return context.Canceled
	}
	defer g.wg.Done()
	stop := context.AfterFunc(g.ctx, func() { _ = stream.Reset() })
	defer stop()
	reader := pbio.NewDelimitedReader(r, maxMessage)
	for since, messages := time.Now(), 1; ; messages++ {
		m := &Message{}
		if err := reader.ReadMsg(m); err != nil {
			return fmt.Errorf("read from peer %d: %w", from, err)
		}
		if time.Since(since) > time.Second {
			since, messages = time.Now(), 1
		}
		if messages > maxRate {
			return fmt.Errorf("peer %d: %w", from, errFlood)
		}
		select {
		case g.inbox <- received{from, m}:
		case <-g.ctx.Done():
			return nil
		}
	}
}

// admit makes stream the one that is read of a peer. It counts as running until
// wg.Done, if the group is not closed.
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

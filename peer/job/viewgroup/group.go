package viewgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-msgio/pbio"
	"github.com/rs/zerolog"
	"google.golang.org/protobuf/proto"

	"github.com/p2pmpi/p2pmpi/internal/peerstream"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/viewgroup/internal/pb"
)

const (
	// writeTimeout bounds the writing of one message.
	writeTimeout = 2 * time.Second
	// maxQueued and maxQueuedBytes bound the messages that wait for one peer, which may provoke long ones and
	// not read them. Further ones are dropped; the protocol tolerates their loss.
	maxQueued, maxQueuedBytes = 256, 4 * maxMessage
	// maxRate is the number of messages that a peer may send per second: many times what it needs while a
	// view changes.
	maxRate = 2000
)

var errFlood = errors.New("too many messages in a second")

// A Group is this peer's part in the agreement on the views of one job.
type Group struct {
	service *Service
	config  GroupConfig
	log     zerolog.Logger

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // run, the writers and the readers
	inbox  chan received
	wake   chan struct{} // signals that gone, introduced or proposed has grown, or that leaving is set
	left   chan struct{} // closed when a group that this peer leaves may be closed

	mu         sync.Mutex             // also held while ctx is cancelled
	peers      map[int]*peer          // by number; a submitter may omit most of them
	numbers    map[p2ppeer.ID]int     // of peers; the last number if a peer has come again
	gone       []int                  // peers not yet passed to the member
	introduced []Newcomer             // likewise
	proposed   []Proposal             // likewise
	leaving    bool                   // Leave was called
	inbound    map[int]network.Stream // one per peer
	contact    Contact                // latest known to the member
	err        error                  // likewise; see Err
	leads      bool                   // likewise

	// Only run accesses these.
	member  *Member
	writers map[int]writer
}

// A peer is a peer of the job, with the member's latest knowledge of it.
type peer struct {
	id      p2ppeer.ID
	votes   bool
	silence int // in ticks
}

// A writer sends messages to one peer until stop is called.
type writer struct {
	*peerstream.Writer[*Message]
	stop context.CancelFunc
}

// received is a message with the number of its sender.
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
		left:    make(chan struct{}),
		peers:   make(map[int]*peer),
		numbers: make(map[p2ppeer.ID]int),
		inbound: make(map[int]network.Stream),
		writers: make(map[int]writer),
	}
	for i, id := range c.Peers {
		g.add(i, id).votes = m.Votes(i)
	}
	g.contact = m.Contact()
	g.ctx, g.cancel = context.WithCancel(s.ctx)
	g.wg.Go(g.run) // ends with ctx
	return g
}

// Propose proposes a change of the view in this peer's name, and repeats the proposal until it is
// committed. It does not block.
func (g *Group) Propose(c view.Change) {
	key := g.service.host.Peerstore().PrivKey(g.service.host.ID())
	p, err := Sign(key, g.config.Job, g.config.Self, c)
	if err != nil { // a key that cannot sign
		g.log.Error().Err(err).Msg("change of the view not proposed")
		return
	}
	g.forward(p)
}

// forward passes a signed proposal to the member, and does not block.
func (g *Group) forward(p Proposal) {
	g.mu.Lock()
	g.proposed = append(g.proposed, p)
	g.mu.Unlock()
	g.ring()
}

// Introduce proposes to admit a peer that joins the running job. The caller must propose the change for the
// peer's process afterwards. It has no effect for a peer that was admitted already or cannot be. It does
// not block.
func (g *Group) Introduce(n Newcomer) {
	g.mu.Lock()
	g.introduced = append(g.introduced, n)
	g.mu.Unlock()
	g.ring()
}

// meetSubmitter introduces a new process of the submitter, which is the remote peer of a stream, unless that was
// done.
func (g *Group) meetSubmitter(number int, signature []byte) {
	n := Newcomer{Peer: number, ID: g.config.Peers[submitterPeer], Process: NoProcess, Signature: signature}
	if number >= g.config.First+maxPeers+maxSubmitters || !verifier(g.config.Job)(n.ID, n.statement(), n.Signature) {
		return
	}
	g.mu.Lock()
	isNew := g.peers[number] == nil
	if isNew {
		g.add(number, n.ID)
	}
	g.mu.Unlock()
	if isNew {
		g.Introduce(n)
	}
}

// Gone reports that a peer has left the job permanently. It does not block. Later proposals take effect
// after it.
func (g *Group) Gone(p p2ppeer.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := g.numberOf(p); i >= 0 {
		g.gone = append(g.gone, i)
		g.ring()
	}
}

// add records a peer. The caller holds g.mu, unless g is not shared yet.
func (g *Group) add(number int, id p2ppeer.ID) *peer {
	p := &peer{id: id}
	g.peers[number] = p
	if last, ok := g.numbers[id]; !ok || last < number {
		g.numbers[id] = number
	}
	return p
}

// numberOf returns the number of a peer, or -1. If the peer has come again, it is the last number. The
// caller holds g.mu.
func (g *Group) numberOf(p p2ppeer.ID) int {
	if number, ok := g.numbers[p]; ok {
		return number
	}
	return -1
}

func (g *Group) number(p p2ppeer.ID) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.numberOf(p)
}

// find returns the record of a peer, if the peer is in the group.
func (g *Group) find(p p2ppeer.ID) (known peer, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := g.numberOf(p); i >= 0 {
		return *g.peers[i], true
	}
	return peer{}, false
}

// IDOf returns the ID of the peer with the given number, if it is known here.
func (g *Group) IDOf(number int) (id p2ppeer.ID, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.peers[number]; p != nil {
		return p.id, true
	}
	return "", false
}

// Leads reports whether this peer leads the group, as of the member's last event.
func (g *Group) Leads() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leads
}

// Votes reports whether a peer votes on the views. If several voters leave at once, the majority may be
// lost.
func (g *Group) Votes(p p2ppeer.ID) bool {
	known, _ := g.find(p)
	return known.votes
}

// Voters returns the number of peers that vote.
func (g *Group) Voters() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.peers {
		if p.votes {
			n++
		}
	}
	return n
}

// Silence returns the time for which a peer has not answered this one. It is 0 unless this peer leads the
// group and is in touch with the majority, because it cannot tell otherwise. ok is false for a peer that is
// not in the group.
func (g *Group) Silence(p p2ppeer.ID) (d time.Duration, ok bool) {
	known, ok := g.find(p)
	return time.Duration(known.silence) * TickPeriod, ok
}

// Contact returns this peer's contact with the majority.
func (g *Group) Contact() Contact {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.contact
}

// Err returns the error that has ended this peer's part in the group, or nil. It is known before the Contact
// function is told CutOff, and may name a peer that has told different peers different views.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// ring wakes run.
func (g *Group) ring() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// Close leaves the group; this peer then falls silent for the others. It returns when all goroutines of the
// group have ended. No function of the GroupConfig runs after that.
func (g *Group) Close() {
	g.mu.Lock() // so that admit adds no reader during Wait
	g.cancel()
	g.mu.Unlock()
	g.wg.Wait()
	g.service.mu.Lock()
	defer g.service.mu.Unlock()
	if g.service.groups[g.config.Job] == g {
		delete(g.service.groups, g.config.Job)
	}
}

// Leave leaves the group when the other peers do not need this peer's vote any more, within leaveTicks, and returns
// at once. If all processes of this peer have ended, they fail in the view meanwhile. Join, for the same job, and
// Service.Close end that early. A function of the GroupConfig may still be called at first.
func (g *Group) Leave() {
	g.mu.Lock()
	g.leaving = true
	g.mu.Unlock()
	g.ring()
	if !g.service.closeLater(g) {
		g.Close()
	}
}

// leaves reports whether Leave was called.
func (g *Group) leaves() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leaving
}

// run owns the member: it passes events to it and carries out its output.
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
			g.passRequests()
		case <-ticker.C:
			// Messages that arrived before the tick take effect before it.
			for range len(g.inbox) {
				g.receive(<-g.inbox)
			}
			g.carryOut(g.member.Tick())
			g.notice()
			if g.member.Left() {
				close(g.left)
				return
			}
		}
	}
}

// passRequests passes the requests of Introduce, Gone, Propose and Leave to the member.
func (g *Group) passRequests() {
	g.mu.Lock()
	gone, introduced, proposed, leaving := g.gone, g.introduced, g.proposed, g.leaving
	g.gone, g.introduced, g.proposed = nil, nil, nil
	g.mu.Unlock()
	for _, n := range introduced {
		g.carryOut(g.member.Introduce(n))
	}
	for _, peer := range gone {
		g.carryOut(g.member.Gone(peer))
	}
	for _, p := range proposed {
		g.carryOut(g.member.Propose(p))
	}
	if leaving { // the job, which the functions refer to, has ended here
		g.config.Committed, g.config.Came, g.config.Contact = func([]Committed, view.View) {}, func(Newcomer) {}, func(Contact) {}
		g.carryOut(g.member.Leave())
	}
}

func (g *Group) receive(r received) {
	out, err := g.member.Step(r.from, r.msg)
	if id, known := g.IDOf(r.from); err != nil && known {
		g.service.conduct.Note(id, "view group message refused", err)
	}
	g.carryOut(out)
}

// notice reports a change of this peer's contact with the majority.
func (g *Group) notice() {
	contact := g.member.Contact()
	g.mu.Lock()
	before := g.contact
	g.contact, g.err = contact, g.member.Err()
	g.mu.Unlock()
	if contact != before {
		g.config.Contact(contact)
	}
}

func (g *Group) carryOut(out Output) {
	for _, n := range out.Came {
		g.reportNewcomer(n)
	}
	g.mu.Lock()
	g.leads = g.member.Leads()
	for i, p := range g.peers {
		p.votes, p.silence = g.member.Votes(i), g.member.Silence(i)
	}
	g.mu.Unlock()
	for _, m := range out.Send {
		if w := g.writerTo(int(m.GetTo())); w != nil {
			w.Put(m)
		}
	}
	for _, c := range out.Committed {
		g.log.Debug().Uint64("epoch", c.Epoch).Stringer("change", c.Change).Ints("by", c.By).Msg("view agreed")
	}
	if len(out.Committed) > 0 {
		g.config.Committed(out.Committed, g.member.View())
	}
}

// reportNewcomer records and reports a peer that was admitted.
func (g *Group) reportNewcomer(n Newcomer) {
	g.mu.Lock()
	g.add(n.Peer, n.ID)
	g.mu.Unlock()
	g.log.Debug().Int("number", n.Peer).Msg("a peer has joined the group")
	if n.Process != NoProcess {
		g.config.Came(n)
	}
}

// writerTo returns the writer for a peer, or nil if the peer is not known or has come again under a later number. The
// two numbers would otherwise share the peer's one stream from here, and each message would end that of the other.
func (g *Group) writerTo(number int) *peerstream.Writer[*Message] {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.peers[number]
	w, open := g.writers[number]
	switch {
	case p == nil:
		return nil
	case g.numberOf(p.id) != number:
		if open {
			w.stop()
			delete(g.writers, number)
		}
		return nil
	case !open:
		w = g.newWriter(p.id)
		g.writers[number] = w
	}
	return w.Writer
}

// newWriter starts a writer for a peer.
func (g *Group) newWriter(to p2ppeer.ID) writer {
	ctx, stop := context.WithCancel(g.ctx)
	w := peerstream.NewWriter(peerstream.Config[*Message]{
		Host: g.service.host, To: to, Protocol: Protocol,
		Hello: g.hello(), Timeout: writeTimeout, Log: g.log,
		NewEncoder: newEncoder, MaxQueued: maxQueued,
		MaxBytes: maxQueuedBytes, Size: func(m *Message) int { return proto.Size(m) },
	})
	g.wg.Go(func() { w.Run(ctx) })
	return writer{w, stop}
}

// hello returns the first message of each stream. A new process of the submitter introduces itself.
func (g *Group) hello() *pb.Hello {
	h := &pb.Hello{Job: g.config.Job}
	if n := g.config.Introduction; n != nil {
		h.Number, h.Signature = uint32(n.Peer), n.Signature
	}
	return h
}

// newEncoder returns the encoding of messages, which is the same on all streams.
func newEncoder() func(*Message) proto.Message {
	return func(m *Message) proto.Message { return m }
}

// read passes the messages on a stream to the member. A newer stream of the same peer ends an older one.
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
		switch {
		case messages > maxRate:
			return fmt.Errorf("peer %d: %w", from, errFlood)
		case int(m.GetFrom()) != from: // the peer may have come again; its next stream then has the new number
			return fmt.Errorf("peer %d: %w: from %d", from, errForeign, m.GetFrom())
		}
		select {
		case g.inbox <- received{from, m}:
		case <-g.ctx.Done():
			return nil
		}
	}
}

// admit makes stream the current stream of a peer and returns true, unless the group is closed. The caller
// must call g.wg.Done when it has finished with the stream.
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

package switchboard

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/launch/switchboard/entrance"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
	"github.com/p2pmpi/p2pmpi/peer/net/dialfilter"
)

// A Service holds what the boards of all jobs at a peer share.
type Service struct {
	Host     host.Host
	Entrance *entrance.Entrance  // nil if direct connections are not accepted
	Dials    *dialfilter.Filter  // decides which addresses this peer connects to
	Punches  *connection.Punches // explains how connections came about; nil if that is not recorded

	mu        sync.Mutex
	obstacles map[p2ppeer.ID]time.Time // end of the time in which this peer does not connect to them directly
}

// Config describes a job to its board.
type Config struct {
	Job           string
	UploadLimited bool // the owner limits the upload, so processes get no TCP connections to other peers
	// Do passes an event to the job's goroutine. It returns false if the job has ended.
	Do     func(event func()) bool
	Report func([]Path) // reports how other peers are reached
	Log    zerolog.Logger
}

// A Port is the board's access to a process of this peer.
type Port struct {
	Send   func(proclink.Message, *os.File) // queues a message to the process, and hands over the descriptor
	Refuse func(to view.Process, err error) // answers a request for a channel
	// Pace returns when the process may send n bytes to other machines. It is used if the upload is limited.
	Pace func(ctx context.Context, n int) error

	id    view.Process
	cell  int  // cell of its doorbell
	bell  bool // it has the shared memory with the doorbells
	ended bool
}

// A channelID names a channel. At most one channel with an ID exists: a process that opens it again has
// given up the earlier one.
type channelID struct{ from, to view.Process }

// An openChannel is a channel that this peer has opened or accepted for one of its processes.
type openChannel struct {
	breakOff context.CancelFunc
	route    route // path of the channel; without a kind: not known yet, or opened by the other peer
	peer     p2ppeer.ID
}

// A Board connects the processes of one job at this peer with each other and with those of other peers.
type Board struct {
	*Service
	config  Config
	ctx     context.Context // ends with the job
	running sync.WaitGroup  // goroutines that end with ctx, or within searchTimeout

	table     Table
	kinds     []proclink.Kind // allowed by the user and the owner, best first
	view      view.View
	begun     bool     // the keys of the processes are known
	waiting   []func() // functions that wait for the keys
	ports     map[view.Process]*Port
	channels  map[channelID]*openChannel
	bells     *os.File                     // shared memory with the doorbells of the processes here, or nil
	cells     int                          // number of cells of bells
	searches  map[p2ppeer.ID]*pathSearch   // searches for better paths to other peers
	distances map[p2ppeer.ID]time.Duration // measured round trips to other peers
	told      map[p2ppeer.ID]channelPath   // reported paths; nil: nothing is reported yet
}

// NewBoard returns the board of a job. ctx ends with the job.
func (s *Service) NewBoard(ctx context.Context, c Config) *Board {
	return &Board{
		Service: s, config: c, ctx: ctx,
		ports: make(map[view.Process]*Port), channels: make(map[channelID]*openChannel),
		searches: make(map[p2ppeer.ID]*pathSearch), distances: make(map[p2ppeer.ID]time.Duration),
	}
}

// SetTable sets the job's membership table, before Start.
func (b *Board) SetTable(t Table) { b.table = t }

// Table returns the job's membership table.
func (b *Board) Table() *Table { return &b.table }

// Attach adds a process of this peer.
func (b *Board) Attach(id view.Process, p Port) {
	p.id, p.cell = id, 0
	for _, other := range b.ports {
		p.cell = max(p.cell, other.cell+1)
	}
	b.ports[id] = &p
}

// Detach removes a process that does not run here any more.
func (b *Board) Detach(id view.Process) { delete(b.ports, id) }

// Ended records that a process has ended. It gets no channels any more.
func (b *Board) Ended(id view.Process) {
	if p := b.ports[id]; p != nil {
		p.ended = true
	}
}

// Start sets the kinds of channels that are allowed, best first. It also creates the shared memory in which the
// processes here wake each other, with cells for spare further processes. If that fails, they use pipes.
func (b *Board) Start(kinds []proclink.Kind, spare int) {
	b.kinds = kinds
	if len(b.ports) > 1 {
		b.makeBells(len(b.ports) + spare)
	}
}

// Begin stores the keys of the processes that were there at the start, rank by rank.
func (b *Board) Begin(keys []byte) {
	b.table.keys, b.begun = keys, true
	b.callWaiting()
}

func (b *Board) callWaiting() {
	for _, f := range b.waiting {
		f()
	}
	b.waiting = nil
}

// whenBegun calls f once the keys of all processes are known. Another peer may learn them earlier.
func (b *Board) whenBegun(f func()) {
	if !b.begun && b.ctx.Err() == nil {
		b.waiting = append(b.waiting, f)
		return
	}
	f()
}

// SetView sets the job's view, and closes the channels of processes that are not in it (R5).
func (b *Board) SetView(v view.View) {
	b.view = v
	for id, c := range b.channels {
		if !v.Has(id.from) || !v.Has(id.to) {
			c.breakOff()
			delete(b.channels, id)
		}
	}
}

// Close releases the resources of the board, after its context has ended.
func (b *Board) Close() {
	if b.bells != nil {
		b.bells.Close()
	}
	b.callWaiting() // they give up
}

// Wait returns when nothing of the board runs any more. Only the end of its context makes it return.
func (b *Board) Wait() { b.running.Wait() }

// Open handles a process's request for a channel to another process. If want is not empty, the channel must
// have that kind.
func (b *Board) Open(from, to view.Process, want proclink.Kind) {
	p := b.ports[from]
	if err := b.openable(channelID{from, to}); err != nil {
		p.Refuse(to, err)
		return
	}
	if q, ok := b.ports[to]; ok {
		allowed := b.kinds
		if want != "" {
			allowed = Both(allowed, []proclink.Kind{want})
		}
		b.openLocal(p, q, allowed)
		return
	}
	peer := b.table.PeerOf[to]
	if want == proclink.Stream { // the process could not use TCP, so situation avoids it for a while
		now := time.Now()
		b.searchOf(peer, now).failTCP(now)
	}
	ctx, s := b.replace(channelID{from, to}), b.situation(from, to)
	b.running.Go(func() { b.openRemote(ctx, p, to, peer, s) })
}

// openable returns an error unless the channel is permitted. Both processes must be in the view and in the
// membership table, and a receiver on this peer must still run.
func (b *Board) openable(c channelID) error {
	for _, p := range []view.Process{c.from, c.to} {
		if _, ok := b.table.PeerOf[p]; !ok || !b.view.Has(p) {
			return fmt.Errorf("process %v is not in the view", p)
		}
	}
	if q, ok := b.ports[c.to]; ok && q.ended {
		return fmt.Errorf("process %v has ended", c.to)
	}
	return nil
}

// replace closes the channel c if it exists, and returns the context of the next one.
func (b *Board) replace(c channelID) context.Context {
	if before, ok := b.channels[c]; ok {
		before.breakOff()
	}
	ctx, cancel := context.WithCancel(b.ctx)
	b.channels[c] = &openChannel{breakOff: cancel}
	return ctx
}

// uploadLimited is the reason why the processes get no TCP connections to other peers.
const uploadLimited = "the owner of one of the peers limits the upload"

// situation returns the obstacles between two processes that are known before any attempt. The processes
// are normally on different peers.
func (b *Board) situation(from, to view.Process) (s situation) {
	table := &b.table
	if b.ports[to] == nil && b.config.UploadLimited {
		s.noDirect = uploadLimited
	} else if table.key(from) == nil || table.key(to) == nil {
		s.noDirect = "not both processes have a key"
	} else if search := b.searches[table.PeerOf[to]]; search != nil && search.avoidsTCP(time.Now()) {
		s.noDirect = "the processes could not agree on keys over it"
	}
	return s
}

// A Channel is a connection from a process of this peer to a process of another peer.
type Channel struct {
	From, To view.Process
	Peer     p2ppeer.ID
	Kind     proclink.Kind
	Way      connection.Way
	Relay    p2ppeer.ID // relay that the channel uses, if any
	Why      string     // reason why no better kind and no better connection is in use
}

// Channels returns the channels that the processes here have opened to other peers.
func (b *Board) Channels() (out []Channel) {
	for id, c := range b.channels {
		if w := c.route; w.kind != "" {
			out = append(out, Channel{From: id.from, To: id.to, Peer: c.peer, Kind: w.kind, Way: w.how, Relay: w.relay, Why: w.why})
		}
	}
	slices.SortFunc(out, func(a, b Channel) int { return cmp.Or(compare(a.From, b.From), compare(a.To, b.To)) })
	return out
}

func compare(a, b view.Process) int {
	return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Replica, b.Replica))
}

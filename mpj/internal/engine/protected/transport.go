package protected

import (
	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/lead"
	"github.com/p2pmpi/p2pmpi/mpj/internal/messagelog"
)

// A Config holds the protocol and the callbacks of a transport.
type Config struct {
	Protocol protection.Protocol
	// Diverged is called with the protocol's reports of messages that differ between replicas, at
	// most maxDiverged times. It may block.
	Diverged func(protection.Divergence)
	// Log is the message log of this process, for replicas that join its rank later; nil if no
	// replica will join. The transport closes it, and calls LogDropped with the reason when the
	// log is dropped, permanently or until the program's next checkpoint. Of the drops that last
	// until a checkpoint, it reports only the first. LogDropped may block.
	Log        *messagelog.Log
	LogDropped func(why string, permanent bool)
	// Joined is called, if this process is new in a running rank, once it has caught up with the
	// rank. Its arguments are the number of replayed messages and their bytes. Joined may block.
	Joined func(messages, bytes uint64)
	// Ahead is called occasionally while the process is ahead of its rank's master. It may block.
	Ahead func()
	// Stalled is called occasionally while the rank waits for other replicas to receive an outcome.
	// It may block.
	Stalled func()
	// UpToDate is called while this process is set aside, with the master's statement that the
	// process lacks nothing. With that statement the process may count again. UpToDate may block.
	UpToDate func(protection.UpToDate)
}

// New returns the constructor of a transport, for the configuration of an engine.
func New(c Config) func(engine.Loop) engine.Transport {
	return func(l engine.Loop) engine.Transport { return newTransport(l, &c) }
}

// A transport passes the protocol every send, arrival, outcome and view, and carries out what the
// protocol returns. Each of its concerns has a type of its own. The engine's mutex guards a transport
// and its parts, and is held at all calls of their methods.
type transport struct {
	loop     engine.Loop
	protocol protection.Protocol
	outputs  outputs // of the protocol, not carried out yet

	decisions     decisions     // outcomes of nondeterministic calls
	windows       windows       // ends of sends
	notices       notices       // match notices
	retained      retained      // payloads in use
	finish        finish        // Finalize
	rejoin        rejoin        // replay of the message log
	checkpointing checkpointing // checkpoints of the program
	leading       leading       // lead over the master
	stall         stall         // waiting time of outcomes
	reports       reports       // callbacks
}

func newTransport(l engine.Loop, c *Config) *transport {
	p := &transport{loop: l, protocol: c.Protocol}
	p.rejoin = newRejoin(p, c)
	p.loop.SetReplaying(!p.rejoin.complete)
	p.checkpointing.p = p
	p.reports = newReports(p, c)
	p.leading = leading{p: p, meter: lead.NewMeter()}
	p.windows = newWindows(p)
	p.notices = notices{p: p, unsent: make(map[messageID]struct{}), asked: make(map[messageID][]view.Process)}
	p.retained = retained{p: p, users: make(map[*byte]int)}
	p.finish.p = p
	p.decisions = newDecisions(p)
	p.loop.Arm() // the view may already name this process as master
	return p
}

// View processes a new view, which follows the view before.
func (p *transport) View(before view.View) {
	p.leading.viewChanged(before)
	p.windows.viewChanged(before)
	p.apply(p.protocol.View(*p.loop.View()))
	p.notices.queryAll(allRanks)
	p.loop.Relieve()
	p.loop.Arm()
}

// Tick processes a tick.
func (p *transport) Tick() {
	out := p.protocol.Tick()
	p.rejoin.requestMore()
	if len(out.Send) > 0 || len(p.rejoin.postponed) > 0 {
		p.loop.Arm()
	}
	p.apply(out)
	p.loop.Relieve()
	p.leading.ask()
	p.reviewStall()
}

// Close releases the files of p.
func (p *transport) Close() {
	p.loop.Lock()
	defer p.loop.Unlock()
	p.rejoin.log.Close()
	if d := p.checkpointing.state; d != nil {
		d.Discard()
	}
}

// logCompleted is called once this process, which was new, has its rank's complete message log.
func (p *transport) logCompleted() {
	p.loop.SetReplaying(false)
	p.windows.reportAll()
	p.loop.RecordFinished()
}

// load is the number of bytes that flowLimit limits.
func (p *transport) load() int { return p.loop.QueuedBytes() + p.protocol.Retained() }

// protect sends m, whose payload belongs to the protocol from now on.
func (p *transport) protect(m protection.Message) {
	if m.Dest != p.loop.Self().Rank {
		p.retained.add(m.Payload)
	}
	if p.protocol.Retained() <= directLoad {
		p.loop.DeferWrites(m.Dest)
	}
	p.leading.step()
	p.windows.byRank[m.Dest].sent.add(len(m.Payload))
	p.apply(p.protocol.Send(m))
	p.loop.WriteTo(m.Dest)
}

// directLoad bounds the bytes of this process's messages that other processes may lack when a send
// writes its frames itself. It is less than the system buffers for a connection, so the send does
// not wait for a hanging replica.
const directLoad = 32 << 10

// queue queues a frame for a process, unless the process is not live.
func (p *transport) queue(to view.Process, f frame.Frame) {
	if !p.loop.Queue(to, f) {
		p.retained.release(f.Payload)
	}
}

// unreceived returns the number of bytes of messages that no receive has matched.
func (p *transport) unreceived() (bytes int) {
	for _, b := range p.loop.Mailboxes() {
		for m := range b.Messages() {
			bytes += m.Size
		}
	}
	return bytes
}

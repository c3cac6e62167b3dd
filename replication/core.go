package replication

import (
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A core contains the state that the parts of the protocol share: this process, its view, and the Output of the
// current call.
type core struct {
	self view.Process
	v    view.View
	// live contains, per rank, its live replicas: the master first, and then by index. The other ranks wait for
	// masters, so a frame for all replicas of a rank goes to the master first.
	live [][]view.Process
	// others contains the live replicas of this process's rank without itself. It is empty once this
	// process is out of the view.
	others   []view.Process
	lacksLog bool // this process lacks a part of its rank's message log
	out      protection.Output
}

// adopt makes v the current view.
func (c *core) adopt(v view.View) {
	c.v = v
	c.live = make([][]view.Process, v.N)
	for rank := range c.live {
		c.live[rank] = v.LiveReplicas(rank)
		if master, ok := v.Master(rank); ok {
			toFront(c.live[rank], master)
		}
	}
	c.others = nil
	if !c.active() {
		return
	}
	for _, q := range c.live[c.self.Rank] {
		if q != c.self {
			c.others = append(c.others, q)
		}
	}
}

// toFront moves p to the front of ps, which contains it. The order of the others stays.
func toFront(ps []view.Process, p view.Process) {
	i := slices.Index(ps, p)
	copy(ps[1:i+1], ps[:i])
	ps[0] = p
}

// active reports whether this process is live in its view. A process that is out of the view does nothing (R5).
func (c *core) active() bool { return c.v.Live(c.self) }

// ended reports whether this process has finished or failed in its view.
func (c *core) ended() bool {
	s := c.v.State(c.self)
	return s == view.Finished || s == view.Failed
}

// term returns the term of this rank's master.
func (c *core) term() uint64 { return c.v.Since[c.self.Rank] }

// newcomers returns the live processes of v that were not in the previous view.
func (c *core) newcomers(v view.View) []view.Process {
	var new []view.Process
	for _, q := range v.Processes() {
		if q != c.self && v.Live(q) && (!c.v.Contains(q) || c.v.State(q) == view.Vacant) {
			new = append(new, q)
		}
	}
	return new
}

// reset empties the Output of the last call, and releases its payloads.
func (c *core) reset() {
	clear(c.out.Send)
	clear(c.out.Deliver)
	clear(c.out.Decided)
	clear(c.out.Released)
	clear(c.out.Diverged)
	c.out = protection.Output{
		Send: c.out.Send[:0], Deliver: c.out.Deliver[:0], Decided: c.out.Decided[:0],
		Released: c.out.Released[:0], Diverged: c.out.Diverged[:0], LogRequests: c.out.LogRequests[:0],
	}
}

// emit sends a frame of this process on the channel to q.
func (c *core) emit(q view.Process, f frame.Frame) {
	c.out.Send = append(c.out.Send, protection.Envelope{To: q, Frame: f})
}

// control returns a frame that carries no message of the program.
func (c *core) control(kind frame.Kind, context uint32, seq uint64, payload []byte) frame.Frame {
	return frame.Frame{
		Header: frame.Header{
			Kind: kind, Context: context, Rank: uint32(c.self.Rank), Seq: seq, Size: uint64(len(payload)),
		},
		Payload: payload,
	}
}

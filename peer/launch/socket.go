package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A queuedMessage is a message to a process, waiting to be sent.
type queuedMessage struct {
	message    proclink.Message
	descriptor *os.File // or nil
}

// maxQueuedMessages bounds the messages that wait for a process. There is one for each channel, so a
// process that leaves this many unread never reads. Views are as large as the job, so only the latest one
// waits. It contains everything that the earlier ones stated.
const maxQueuedMessages = 4096

// A messageQueue holds the messages to a process.
type messageQueue struct {
	outgoing chan queuedMessage
	early    []queuedMessage           // messages for a process that has not sent Hello
	unread   atomic.Pointer[view.View] // view that the Update in outgoing will carry; nil: no Update is queued
}

// add queues a message. It returns false if the process leaves too many messages unread.
func (q *messageQueue) add(l queuedMessage, greeted bool) bool {
	if !greeted && len(q.early) < maxQueuedMessages {
		q.early = append(q.early, l)
		return true
	}
	select {
	case q.outgoing <- l:
		return true
	default:
		l.drop()
		return false
	}
}

// dropEarly drops the messages to a process that will not send Hello.
func (q *messageQueue) dropEarly() {
	for _, l := range q.early {
		l.drop()
	}
	q.early = nil
}

// deliver sends the queued messages until ctx ends.
func (q *messageQueue) deliver(ctx context.Context, socket *proclink.Conn) {
	for {
		select {
		case l := <-q.outgoing:
			if l.message.Type == proclink.Update {
				l.message.View = q.unread.Swap(nil)
			}
			socket.Send(l.message, l.descriptor) // an error means that the process has ended
			l.drop()
		case <-ctx.Done():
			for len(q.outgoing) > 0 {
				(<-q.outgoing).drop()
			}
			return
		}
	}
}

// listen turns the process's messages into events until its control socket closes.
func (p *process) listen(heard chan<- struct{}) {
	defer p.job.running.Done()
	defer close(heard)
	defer p.live.socket.CloseUnclaimed()
	pace := newMessagePace(p.job.spec.N)
	for {
		m, f, err := p.live.socket.Receive()
		if f != nil {
			f.Close() // processes have no descriptors to hand over
		}
		var broken *net.OpError
		switch {
		case err == nil:
			if !p.job.do(func() { p.handle(m) }) || pace.wait(p.job.ctx, max(p.live.socket.Last(), minBurst)) != nil {
				return
			}
			continue
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &broken): // closed by either side
		default:
			p.job.do(func() { p.protocolError(err) })
		}
		return
	}
}

// Bounds on the rate at which this peer reads the messages of a process. Reading at this rate costs a few
// percent of a processor; a process that sends faster has to wait.
const (
	messagePace = 4 << 20 // bytes a second
	minBurst    = 1 << 10 // minimum cost of a message, however short
)

// newMessagePace returns the rate limiter for a process of a job of n ranks. The burst allows the process to
// open a channel to every rank at once.
func newMessagePace(n int) pacer {
	return pacer{rate.NewLimiter(messagePace, messagePace+n*minBurst)}
}

// protocolError ends a process that violates the protocol of the control socket.
func (p *process) protocolError(err error) {
	p.end("violated the protocol of its control socket: " + err.Error())
}

// drop closes the message's descriptor.
func (l queuedMessage) drop() {
	if l.descriptor != nil {
		l.descriptor.Close()
	}
}

// send queues a message to the process, and hands over the descriptor. Before the process has sent Hello it
// would not understand the message, so send keeps it until then.
func (p *process) send(m proclink.Message, descriptor *os.File) {
	l := queuedMessage{m, descriptor}
	if p.exit != nil || p.failedInView {
		l.drop()
	} else if !p.queue.add(l, p.greeted) {
		p.end("does not read its control socket")
	}
}

// begin lets the process leave mpj.Init, if the process has called it and the job has begun. A process that
// was added later must also be in the view.
func (p *process) begin() {
	v := p.job.views.current
	if !p.initialized || p.job.settings.init != initReturns || p.begun || p.added && v.State(p.id) == view.Vacant {
		return
	}
	p.begun = true
	p.send(proclink.Message{Type: proclink.Start, View: &v, Places: p.job.settings.places, ToleratedHang: p.job.detection.hang}, nil)
}

// refuse tells the process that it gets no channel to another process.
func (p *process) refuse(to view.Process, err error) {
	p.send(proclink.Message{Type: proclink.Refused, Process: &to, Text: text(err)}, nil)
}

// handle handles one message of the process.
func (p *process) handle(m proclink.Message) {
	j := p.job
	switch {
	case p.exit != nil || p.failedInView:
	case m.Type == proclink.Hello && !p.greeted:
		p.greet(m.Version)
	case m.Type == proclink.Init && p.greeted && !p.initialized:
		if len(m.Key) != proclink.KeySize {
			p.protocolError(fmt.Errorf("key of %d bytes", len(m.Key)))
			return
		}
		p.initialized = true
		j.send(initialized(p.id, m.Key))
		p.begin()
	case m.Type == proclink.Open && p.initialized && m.Process != nil:
		j.board.Open(p.id, *m.Process, m.Kind)
	case m.Type == proclink.Pong:
		j.liveness.answered(p.id)
	case m.Type == proclink.LogDropped && p.greeted && j.settings.heal:
		p.report(m)
	case m.Type == proclink.Flush && p.initialized && !p.finalized:
		p.flush(m)
	case m.Type == proclink.Finalized && p.initialized && !p.finalized:
		if err := protection.ValidSums(m.Sums, j.views.current); err != nil {
			p.protocolError(err)
			return
		}
		p.finalized, p.account = true, account{sums: m.Sums, summed: m.Summed}
		j.liveness.finalized(p.id)
		j.send(finalized(p.id))
		p.send(proclink.Message{Type: proclink.Bye}, nil)
	case m.Type == proclink.Abort && p.greeted && !p.aborted:
		p.aborted = true
		j.send(aborted(p.id, m.Code, m.Text))
		p.end("has called Abort") // so that its output ends
	case m.Type == proclink.Healed && p.joining && !p.reports.healed && p.initialized, reportsOnReplicas(m) && p.initialized:
		p.report(m)
	default:
		p.protocolError(fmt.Errorf("message %.20q out of order", m.Type))
	}
}

// report passes a report of the process on to the submitter.
func (p *process) report(m proclink.Message) {
	out, err := p.reports.take(p.id, m, p.job.views.current)
	switch {
	case err != nil:
		p.protocolError(err)
		return
	case out == nil:
		return
	case m.Type == proclink.Diverged:
		p.warn().Bool("differs", m.Divergence.Differs()).Stringer("message", m.Divergence).Msg("divergence")
	case m.Type == proclink.LogDropped:
		p.warn().Str("why", clip(m.Text)).Bool("until a checkpoint", m.Lapsed).Msg("the process cannot bring a new replica up to date")
	}
	p.job.send(out)
}

// warn returns a warning about the process.
func (p *process) warn() *zerolog.Event {
	return p.job.log.Warn().Int("rank", p.id.Rank).Int("replica", p.id.Replica)
}

// greet answers the process's Hello.
func (p *process) greet(protocol int) {
	if protocol != version.Protocol {
		p.end(fmt.Sprintf("the program speaks protocol %d, its peer %d", protocol, version.Protocol))
		return
	}
	early := p.queue.early
	p.greeted, p.queue.early = true, nil
	p.setup()
	for _, l := range early {
		p.send(l.message, l.descriptor)
	}
	p.job.liveness.programs.Watch(p.id)
}

// setup tells the process its rank and replica, and the state of the job.
func (p *process) setup() {
	j, v, id := p.job, p.job.views.current, p.id
	if p.joining && v.State(id) == view.Vacant {
		next, q, ok := v.Join(id.Rank)
		if !ok || q != id {
			p.end(fmt.Sprintf("no process %v can join the job now", id))
			return
		}
		v = next // if a view of this epoch with the process ever exists, it is this one
	}
	m := proclink.Message{
		Type: proclink.Setup, Job: j.spec.ID, Process: &id, View: &v, Crowded: j.board.Table().Here > runtime.NumCPU(),
		Heal: j.settings.heal, Joining: p.joining,
	}
	bells, cell := j.board.Bell(id)
	if bells != nil {
		m.Kind, m.Cell = proclink.Shm, cell
	}
	p.send(m, bells)
}

package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/launch/internal/supervisor"
)

// A process is what the job's owner knows of one of its processes here.
type process struct {
	job *job
	id  view.Process

	live *instance // nil until it runs

	ctx    context.Context // ends with the process
	cancel context.CancelFunc
	toLine chan letter
	early  []letter // for a process that has not said hello

	greeted, initialized, finalized, aborted bool // what it has said

	out      [streams]output
	speaks   bool             // for its rank, in the current view
	expelled bool             // failed in the view: nothing is said of it any more
	exit     *supervisor.Exit // not nil: it has ended
	reason   string           // why this peer ended it, or empty
	asked    bool             // its files have been collected
}

// A letter is a message on its way to a process.
type letter struct {
	message    proclink.Message
	descriptor *os.File // or nil
}

// maxLetters bounds those that wait for a process. There is one for each
// channel and each view, so one that leaves so many unread never reads.
const maxLetters = 4096

func newProcess(j *job, id view.Process) *process {
	p := &process{job: j, id: id, toLine: make(chan letter, maxLetters)}
	p.ctx, p.cancel = context.WithCancel(j.ctx)
	for s := range p.out {
		p.out[s].room = make(chan struct{}, 1)
	}
	return p
}

// run begins to watch a process that has been started.
func (p *process) run(i *instance) {
	p.live = i
	if p.expelled {
		p.kill()
	}
	j := p.job
	j.running.Add(4)
	heard := make(chan struct{})
	go p.listen(heard) // ends with the line
	go p.deliver()     // ends with ctx
	go p.await(heard)  // ends with the process
	go p.drain(0)      // ends with the pipe
	j.running.Add(1)
	go p.drain(1)
}

// kill ends the process and its descendants, without waiting for that.
func (p *process) kill() {
	if p.live != nil {
		p.live.program.Kill()
	}
}

// close ends the process and returns when nothing of it is left.
func (p *process) close() {
	if p.live != nil {
		p.live.close()
	}
	for _, l := range p.early {
		l.drop()
	}
}

// end kills the process for a reason that the submitter is told.
func (p *process) end(reason string) {
	if p.reason == "" && p.exit == nil {
		p.reason = reason
		p.kill()
	}
}

// lineTimeout is how long after the end of a process its line may take to end.
// It is longer only if a descendant holds it, and that is being killed.
const lineTimeout = time.Second

// await reports the end of the process, after its last words (F2).
func (p *process) await(heard <-chan struct{}) {
	defer p.job.running.Done()
	e := p.live.program.Wait()
	select {
	case <-heard:
	case <-time.After(lineTimeout):
	}
	p.job.do(func() { p.job.exited(p, e) })
}

func (j *job) exited(p *process, e supervisor.Exit) {
	p.exit = &e
	p.cancel()
	j.alive.Forget(p.id)
	for _, l := range p.early {
		l.drop()
	}
	p.early = nil
	if p.expelled {
		return
	}
	j.log.Info().Int("rank", p.id.Rank).Int("replica", p.id.Replica).
		Int("code", e.Code).Str("signal", e.Signal).Str("reason", p.reason).Msg("process ended")
	j.say(exited(p, e))
	for s := range p.out {
		p.settle(s)
	}
}

// listen turns what the process says into events, until its line ends.
func (p *process) listen(heard chan<- struct{}) {
	defer p.job.running.Done()
	defer close(heard)
	defer p.live.line.CloseUnclaimed()
	for {
		m, f, err := p.live.line.Receive()
		if f != nil {
			f.Close() // processes have none to give
		}
		var broken *net.OpError
		switch {
		case err == nil:
			if !p.job.do(func() { p.job.hearProcess(p, m) }) {
				return
			}
			continue
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &broken): // closed, by either side
		default:
			p.job.do(func() { p.babbles(err) })
		}
		return
	}
}

// babbles ends a process that does not keep to the protocol of its line.
func (p *process) babbles(err error) { p.end("broke the protocol of its line: " + err.Error()) }

// deliver sends letters until the process ends.
func (p *process) deliver() {
	defer p.job.running.Done()
	for {
		select {
		case l := <-p.toLine:
			p.live.line.Send(l.message, l.descriptor) // an error means that the process is gone
			l.drop()
		case <-p.ctx.Done():
			for len(p.toLine) > 0 {
				(<-p.toLine).drop()
			}
			return
		}
	}
}

// drop closes the letter's descriptor.
func (l letter) drop() {
	if l.descriptor != nil {
		l.descriptor.Close()
	}
}

// tell sends the process a message, and hands over the descriptor. It waits for
// the process's hello, before which it would not be understood.
func (p *process) tell(m proclink.Message, descriptor *os.File) {
	l := letter{m, descriptor}
	switch {
	case p.exit != nil || p.expelled:
		l.drop()
	case !p.greeted && len(p.early) < maxLetters:
		p.early = append(p.early, l)
	default:
		select {
		case p.toLine <- l:
		default:
			l.drop()
			p.end("does not read its line")
		}
	}
}

// start lets the process leave mpj.Init.
func (p *process) start() {
	v := p.job.view
	p.tell(proclink.Message{Type: proclink.Start, View: &v}, nil)
}

// hearProcess handles one message of a process.
func (j *job) hearProcess(p *process, m proclink.Message) {
	switch {
	case p.exit != nil || p.expelled:
	case m.Type == proclink.Hello && !p.greeted:
		j.greet(p, m.Version)
	case m.Type == proclink.Init && p.greeted && !p.initialized:
		p.initialized = true
		j.say(initialized(p.id))
		if j.begun {
			p.start()
		}
	case m.Type == proclink.Open && p.initialized && m.Process != nil:
		j.open(p, *m.Process)
	case m.Type == proclink.Pong:
		j.alive.Answered(p.id)
	case m.Type == proclink.Finalized && p.initialized && !p.finalized:
		p.finalized = true
		j.alive.Forget(p.id) // it may take its time to exit
		j.say(finalized(p.id))
		p.tell(proclink.Message{Type: proclink.Bye}, nil)
	case m.Type == proclink.Abort && p.greeted && !p.aborted:
		p.aborted = true
		j.say(aborted(p.id, m.Code, m.Text))
	default:
		p.babbles(fmt.Errorf("message %.20q out of order", m.Type))
	}
}

// greet answers a process's hello.
func (j *job) greet(p *process, protocol int) {
	if protocol != version.Protocol {
		p.end(fmt.Sprintf("the program speaks protocol %d, its peer %d", protocol, version.Protocol))
		return
	}
	early := p.early
	p.greeted, p.early = true, nil
	v, id := j.view, p.id
	p.tell(proclink.Message{Type: proclink.Setup, Job: j.spec.ID, Process: &id, View: &v}, nil)
	for _, l := range early {
		p.tell(l.message, l.descriptor)
	}
	j.alive.Watch(p.id)
}

// An aliveCheck is the fault detector's CheckAlive with the clock that it goes
// by and the number of the next question.
type aliveCheck struct {
	*faultdetect.CheckAlive
	since time.Time
	count uint64
}

func newAliveCheck() aliveCheck {
	return aliveCheck{CheckAlive: faultdetect.NewCheckAlive(tickPeriod, faultdetect.DefaultHang), since: time.Now()}
}

// checkAlive asks the processes whether they are there, and ends those that
// have not answered for too long: one that was stopped, or never yields.
func (j *job) checkAlive() {
	ask, hung := j.alive.Tick(time.Since(j.alive.since))
	j.alive.count++
	for _, id := range ask {
		j.local[id].tell(proclink.Message{Type: proclink.Ping, Count: j.alive.count}, nil)
	}
	for _, id := range hung {
		j.local[id].end(fmt.Sprintf("has not answered its peer for %v", faultdetect.DefaultHang))
	}
}

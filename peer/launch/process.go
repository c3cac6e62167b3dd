package launch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/p2pmpi/p2pmpi/filetransfer"
	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/launch/process/supervisor"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A process is one of the job's processes on this peer. The job's goroutine owns it.
type process struct {
	job *job
	id  view.Process

	live *instance // nil until the process runs

	ctx    context.Context // ends with the process
	cancel context.CancelFunc
	queue  messageQueue

	greeted, initialized, finalized, aborted bool // messages that it has sent
	reports                                  reports
	account                                  account

	flushing     *flush // its pending flush request; nil: none
	flushes      atomic.Uint64
	out          [streams]output
	leads        bool // it is its rank's output leader (view.OutputLeader) in the current view
	failedInView bool // it has failed in the view; this peer reports nothing more about it
	killed       bool
	exit         *supervisor.Exit // nil while it runs
	reason       string           // why this peer ended it, or empty
	upload       pacer            // fixed
	excess       limits.Kind      // limit for which this peer ended it, or empty
	asked        bool             // the submitter has requested its output files
	leaving      bool             // the submitter has been told that it will leave

	joining bool            // it joins its rank late; fixed
	added   bool            // it was added while the job ran here; fixed
	slot    reservation.Key // its own slot, if it was added; fixed
	begun   bool            // it has left mpj.Init, or may leave it
}

func newProcess(j *job, id view.Process) *process {
	p := &process{job: j, id: id, upload: newPacer(j.grant.Slot.Upload), queue: messageQueue{outgoing: make(chan queuedMessage, maxQueuedMessages)}}
	p.ctx, p.cancel = context.WithCancel(j.ctx)
	for s := range p.out {
		p.out[s].room = make(chan struct{}, 1)
	}
	if j.spec.R > 1 {
		p.out[stdout].sum = sha256.New()
	}
	return p
}

// run begins to watch a process that has been started.
func (p *process) run(i *instance) {
	p.live = i
	p.job.liveness.started(p.id)
	if p.failedInView || p.reason != "" {
		p.kill()
	}
	p.job.running.Add(2 + streams)
	heard := make(chan struct{})
	go p.listen(heard)                                            // ends with the control socket
	p.job.running.Go(func() { p.queue.deliver(p.ctx, i.socket) }) // ends with ctx
	go p.await(heard)                                             // ends with the process
	for s := range streams {
		go p.drain(s) // ends with the pipe
	}
}

// kill kills the process and its descendants without waiting for their exit. When it kills the last process
// of the job, it also raises the priority of the job's control group.
func (p *process) kill() {
	if p.live == nil {
		return
	}
	p.live.note() // its supervisor removes the group
	p.live.program.Kill()
	p.killed = true
	if p.job.here.allKilled() {
		p.job.confinement.raisePriority()
	}
}

// close kills the process and returns when nothing of it is left.
func (p *process) close() {
	if p.live != nil {
		p.live.close()
	}
	p.queue.dropEarly()
}

// end kills the process and records the reason for the submitter.
func (p *process) end(reason string) {
	if p.reason == "" && p.exit == nil {
		p.reason = reason
		p.kill()
	}
}

// socketTimeout bounds how long the control socket of a process may stay open after the process has ended. It
// only stays open if a descendant holds it, and that descendant is being killed.
const socketTimeout = time.Second

// await waits for the process to end, and reports the end after the process's last messages (F2).
func (p *process) await(heard <-chan struct{}) {
	defer p.job.running.Done()
	e := p.live.program.Wait()
	select {
	case <-heard:
	case <-time.After(socketTimeout):
	}
	x, exceeded := p.endedByLimit(e)
	p.job.do(func() {
		if exceeded {
			p.exceed(x)
		}
		p.exited(e)
	})
}

// exited handles the end of the process.
func (p *process) exited(e supervisor.Exit) {
	j := p.job
	p.exit = &e
	p.cancel()
	if j.here.local[p.id] == p { // otherwise it was dropped, and there may be another one
		j.liveness.ended(p.id)
		j.board.Ended(p.id)
	}
	p.queue.dropEarly()
	if p.failedInView {
		return
	}
	j.log.Info().Int("rank", p.id.Rank).Int("replica", p.id.Replica).
		Int("code", e.Code).Str("signal", e.Signal).Str("reason", p.reason).Msg("process ended")
	j.send(exited(p, e))
	for s := range p.out {
		p.settle(s)
	}
}

// waitsToJoin reports whether the process was added, and no other process has been told that it joins.
func (p *process) waitsToJoin() bool {
	_, told := p.job.board.Table().PeerOf[p.id]
	return p.added && !told && p.job.views.current.State(p.id) == view.Vacant
}

// match finds and hashes the files that the patterns name, once no process can change them any more.
func (p *process) match(patterns []string) ([]byte, map[filetransfer.Digest]filetransfer.Source, error) {
	ctx, cancel := context.WithTimeout(p.job.ctx, leftTimeout)
	defer cancel()
	if err := p.live.program.Gone(ctx); err != nil {
		return nil, nil, fmt.Errorf("descendants of process %v still run: %w", p.id, err)
	}
	return match(p.job.ctx, p.job.folder.Process(p.id), patterns)
}

// pace delays messages of the process to other peers.
func (p *process) pace(ctx context.Context, n int) error {
	return errors.Join(p.upload.wait(ctx, n), p.job.confinement.upload.wait(ctx, n))
}

// adopt tells the process about a view, and applies what the view states about the process. A view without
// the process does not concern it.
func (p *process) adopt(v view.View) {
	if v.State(p.id) == view.Vacant {
		return
	}
	if v.State(p.id) == view.Failed {
		p.failedInView, p.leads = true, false
		p.kill()
		return
	}
	if p.greeted && p.queue.unread.Swap(&v) == nil {
		p.send(proclink.Message{Type: proclink.Update}, nil) // deliver adds the view
	}
	if leads := v.IsOutputLeader(p.id); leads != p.leads {
		p.leads = leads
		p.rewind()
	}
	p.begin()
}

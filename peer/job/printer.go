package job

import (
	"fmt"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A printer hands events to the user in a goroutine of its own, so that a user
// who reads slowly, or not at all, holds up the output and nothing else. What
// waits in it is bounded: output by what may be unread (see flow), views by the
// number of processes, and of one phase only the latest count waits.
type printer struct {
	job    string
	sink   func(Event) error
	failed func(error) // called once, after which nothing more is shown
	keeper *keeper     // of what has been shown

	wake  chan struct{} // gets a token when there is something to do for run
	news  chan struct{} // gets a token when there is a receipt
	ended chan struct{}

	unkept bool // the user knows that what is shown cannot be noted

	mu     sync.Mutex
	queue  []item
	shown  []item // of which the job wants a receipt
	closed bool
}

// An item waits for the user: an event, or the end of a process's output.
type item struct {
	event   Event
	next    uint64        // of output: how many records of its stream the user then has
	drained *view.Process // no event: all that this process wrote has been shown
}

func newPrinter(job string, sink func(Event) error, failed func(error), keeper *keeper) *printer {
	p := &printer{
		job: job, sink: sink, failed: failed, keeper: keeper,
		wake: make(chan struct{}, 1), news: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	go p.run() // ends with close
	return p
}

// print queues an item. It never blocks.
func (p *printer) print(i item) {
	i.event.Time, i.event.Job = time.Now(), p.job
	p.mu.Lock()
	if last := len(p.queue) - 1; last >= 0 && samePhase(p.queue[last].event, i.event) {
		p.queue[last] = i
	} else {
		p.queue = append(p.queue, i)
	}
	p.mu.Unlock()
	signal(p.wake)
}

func samePhase(a, b Event) bool {
	return a.Kind == PhaseEvent && b.Kind == PhaseEvent && a.Phase == b.Phase
}

// signal leaves a token in c unless there is one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// receipts returns the output that was shown, and the ends of output that were
// reached, since the last call.
func (p *printer) receipts() []item {
	p.mu.Lock()
	defer p.mu.Unlock()
	shown := p.shown
	p.shown = nil
	return shown
}

func (p *printer) run() {
	defer close(p.ended)
	broken := false
	for range p.wake {
		items, closed := p.take()
		for _, i := range items {
			broken = broken || !p.show(i)
		}
		if closed {
			return
		}
	}
}

func (p *printer) take() (items []item, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	items = p.queue
	p.queue = nil
	return items, p.closed
}

// show hands one item to the user.
func (p *printer) show(i item) bool {
	if i.drained == nil {
		if err := p.sink(i.event); err != nil {
			p.failed(err)
			return false
		}
	}
	if i.next > 0 {
		p.note(i)
	}
	if i.drained != nil || i.next > 0 {
		p.mu.Lock()
		p.shown = append(p.shown, i)
		p.mu.Unlock()
		signal(p.news)
	}
	return true
}

// note keeps what has been shown.
func (p *printer) note(i item) {
	err := p.keeper.note(i.event.Rank, i.event.Stream, i.next)
	if err == nil || p.unkept {
		return
	}
	p.unkept = true
	p.print(item{event: Event{Kind: WarningEvent, Text: fmt.Sprintf("should this p2prun be killed, some output may come twice, since how much is shown cannot be kept: %v", err)}})
}

// close returns when everything that was handed in has been shown.
func (p *printer) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	signal(p.wake)
	<-p.ended
}

package submit

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
)

// A printer passes events to the user in a goroutine of its own, so that a user who reads slowly,
// or not at all, delays only the output. Its queues are bounded: output by the limit for unread
// output (see flow), views by the number of processes, and phases by keeping only the latest count
// of each.
type printer struct {
	job    string
	sink   Sink
	failed func(error) // called once, after which nothing more is shown
	keeper *keeper     // records what was shown
	ahead  bool        // output counts as complete once the sink has taken it, not once it was shown
	single bool        // records are shown one at a time

	wake  chan struct{} // holds a token when run has something to do
	news  chan struct{} // holds a token when there is a receipt
	ended chan struct{}

	unkept bool // the user knows that shown output cannot be recorded

	mu     sync.Mutex
	queue  []item
	handed []item // passed to the sink, which has not confirmed them yet
	shown  []item // receipts for the job
	broken bool
	closed bool
}

// An item is an event for the user, or the end of a process's output.
type item struct {
	event   Event
	weight  int           // of output: its share of the limit for unread output
	drained *view.Process // instead of an event: the process whose output was shown completely
}

func newPrinter(job string, sink Sink, failed func(error), keeper *keeper, ahead bool) *printer {
	p := &printer{
		job: job, sink: sink, failed: failed, keeper: keeper, ahead: ahead,
		// If this process is killed, a resumed job shows output again that was shown but not
		// recorded; single records keep that short. Output that a listener has taken but not
		// acknowledged is shown again in any case.
		single: keeper != nil && !ahead,
		wake:   make(chan struct{}, 1), news: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	go p.run() // ends with close
	return p
}

// print queues an item. It never blocks.
func (p *printer) print(i item) {
	i.event.Time, i.event.Job = time.Now(), p.job
	p.mu.Lock()
	last := len(p.queue) - 1
	switch {
	case last >= 0 && samePhase(p.queue[last].event, i.event):
		p.queue[last] = i
	case last >= 0 && p.queue[last].extend(i):
	default:
		p.queue = append(p.queue, i)
	}
	p.mu.Unlock()
	signal(p.wake)
}

func samePhase(a, b Event) bool {
	return a.Kind == PhaseEvent && b.Kind == PhaseEvent && a.Phase == b.Phase
}

// mostTogether is the most bytes of waiting output that are merged into one item.
const mostTogether = 64 << 10

// extend merges next into i if next is output that directly follows i's. It reports whether it did.
func (i *item) extend(next item) bool {
	a, b := &i.event, next.event
	follows := a.Kind == OutputEvent && b.Kind == OutputEvent && a.Rank == b.Rank && a.Stream == b.Stream &&
		a.Record > 0 && b.Record == a.Record+b.Records
	if !follows || len(a.Data)+len(b.Data) > mostTogether {
		return false
	}
	a.Data = append(a.Data, b.Data...)
	a.Record, a.Records = b.Record, a.Records+b.Records
	i.weight += next.weight
	return true
}

// split takes the first record off an item with several records of output.
func (i *item) split() (first item, ok bool) {
	e := &i.event
	if e.Kind != OutputEvent || e.Records < 2 {
		return item{}, false
	}
	n := job.RecordLen(e.Data)
	first = item{event: *e}
	first.event.Data, e.Data = e.Data[:n:n], e.Data[n:]
	first.event.Record, first.event.Records = e.Record-e.Records+1, 1
	e.Records--
	return first, true
}

// signal leaves a token in c unless there is one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// receipts returns the output that was shown, and the ends of output that were reached, since the
// last call.
func (p *printer) receipts() []item {
	p.mu.Lock()
	defer p.mu.Unlock()
	shown := p.shown
	p.shown = nil
	return shown
}

func (p *printer) run() {
	defer close(p.ended)
	for range p.wake {
		for p.hand() {
		}
		if p.over() {
			return
		}
	}
}

// over reports whether the printer is closed and nothing waits any more.
func (p *printer) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed && len(p.queue) == 0 && len(p.handed) == 0
}

// hand passes the next item to the sink. It reports whether there was one.
func (p *printer) hand() bool {
	p.mu.Lock()
	if p.broken {
		p.queue = nil
	}
	if len(p.queue) == 0 {
		p.mu.Unlock()
		return false
	}
	i := p.takeFirst()
	done := p.check
	switch k := i.event.Kind; {
	case i.drained != nil && (p.ahead || len(p.handed) == 0):
		p.receive(i)
	case i.drained != nil || k == OutputEvent || k == ResultEvent:
		p.handed = append(p.handed, i)
		done = p.settle
	}
	p.mu.Unlock()
	if i.drained == nil {
		p.sink(i.event, done)
	}
	return true
}

// takeFirst removes the next item to show from the queue. The caller holds mu.
func (p *printer) takeFirst() item {
	if p.single {
		if first, ok := p.queue[0].split(); ok {
			return first
		}
	}
	i := p.queue[0]
	p.queue[0], p.queue = item{}, p.queue[1:]
	return i
}

// receive issues a receipt for i, merged with the previous one if i follows it. The caller holds
// mu.
func (p *printer) receive(i item) {
	if p.broken {
		return
	}
	i.event.Data = nil
	if last := len(p.shown) - 1; last < 0 || !p.shown[last].extend(i) {
		p.shown = append(p.shown, i)
	}
	signal(p.news)
}

// unseenOutput returns the output that the user may not have yet.
func (p *printer) unseenOutput() (rest []Output) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range slices.Concat(p.handed, p.queue) {
		if e := i.event; i.drained == nil && e.Kind == OutputEvent {
			rest = append(rest, Output{e.Rank, e.Stream, e.Record, e.Records, e.Data})
		}
	}
	return rest
}

// settle handles the sink's confirmation of the first item in handed.
func (p *printer) settle(err error) {
	p.check(err)
	p.mu.Lock()
	i := p.handed[0]
	p.mu.Unlock()
	switch {
	case err != nil:
	case i.event.Kind == ResultEvent:
		p.keeper.delivered()
	case i.event.Record > 0:
		p.note(i)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && i.event.Record > 0 {
		p.receive(i)
	}
	p.dropFirst()
	for len(p.handed) > 0 && p.handed[0].drained != nil {
		p.receive(p.handed[0])
		p.dropFirst()
	}
	if len(p.handed) == 0 {
		signal(p.wake)
	}
}

// dropFirst removes the first item from handed. The caller holds mu.
func (p *printer) dropFirst() {
	p.handed[0] = item{}
	p.handed = p.handed[1:]
}

// check handles an error of the sink: after the first one, the user gets nothing more.
func (p *printer) check(err error) {
	if err == nil {
		return
	}
	p.mu.Lock()
	first := !p.broken
	p.broken = true
	p.mu.Unlock()
	if first {
		p.failed(err)
	}
}

// note records that an item was shown.
func (p *printer) note(i item) {
	err := p.keeper.note(i.event)
	if err == nil || p.unkept {
		return
	}
	p.unkept = true
	p.print(item{event: Event{Kind: WarningEvent, Text: fmt.Sprintf("if this p2prun is killed, some output may be shown twice, since the position of the shown output cannot be recorded: %v", err)}})
}

// close returns when the user has got all items, or never will.
func (p *printer) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	signal(p.wake)
	<-p.ended
}

package job

import (
	"sync"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A printer hands records to the user in a goroutine of its own, so that a
// user who reads slowly holds up the output but not the job's view. What waits
// in it is bounded by what the peers send without an acknowledgement.
type printer struct {
	emit   func(Event) error
	events chan<- printed
	done   <-chan struct{}

	mu     sync.Mutex
	queue  []line
	wake   chan struct{} // holds one token when the queue is not empty
	closed chan struct{}
	ended  chan struct{}
}

// line is one record on its way out, or the end of a process's output.
type line struct {
	rank    int
	stream  Stream
	record  []byte
	next    uint64        // records of this stream that the user then has
	drained *view.Process // everything of this process is out
}

// printed says what the user has got.
type printed struct{ lines []line }

func newPrinter(emit func(Event) error, events chan<- printed, done <-chan struct{}) *printer {
	p := &printer{
		emit: emit, events: events, done: done,
		wake: make(chan struct{}, 1), closed: make(chan struct{}), ended: make(chan struct{}),
	}
	go p.run() // ends at close
	return p
}

func (p *printer) print(l line) {
	p.mu.Lock()
	p.queue = append(p.queue, l)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *printer) take() []line {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queue
	p.queue = nil
	return q
}

func (p *printer) run() {
	defer close(p.ended)
	for {
		select {
		case <-p.wake:
		case <-p.closed:
		}
		lines := p.take()
		if p.write(lines) && len(lines) > 0 {
			select {
			case p.events <- printed{lines}:
			case <-p.done:
			}
		}
		select {
		case <-p.closed:
			p.write(p.take())
			return
		default:
		}
	}
}

// write hands lines to the user. When that fails the job has been cancelled,
// and nothing more is said of them.
func (p *printer) write(lines []line) bool {
	for _, l := range lines {
		if l.record == nil {
			continue
		}
		if p.emit(Event{Kind: OutputEvent, Rank: l.rank, Stream: l.stream, Data: l.record}) != nil {
			return false
		}
	}
	return true
}

// close returns when everything that was handed in is out. done must be closed.
func (p *printer) close() {
	close(p.closed)
	<-p.ended
}

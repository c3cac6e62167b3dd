package submit

import (
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
)

// A Kind is the kind of an Event.
type Kind string

// The kinds of events.
const (
	PhaseEvent    Kind = "phase"    // Phase, with its progress
	ReplicasEvent Kind = "replicas" // Choice: the result of -r auto; Text
	PlannedEvent  Kind = "planned"  // Planned: where the job of a dry run would run; Text
	PlacedEvent   Kind = "placed"   // Placed: which process runs on which peer
	OutputEvent   Kind = "output"   // Rank, Stream, Data
	ViewEvent     Kind = "view"     // View and By, the peers that requested it; or Text: a message about a process
	ChannelsEvent Kind = "channels" // Routes: how processes reach each other
	WarningEvent  Kind = "warning"  // Text
	HealEvent     Kind = "heal"     // Rank, Text; after a replacement also Placed, Took
	KeptEvent     Kind = "kept"     // Text: another process can resume the job if this one is killed
	ResultEvent   Kind = "result"   // Result; the last event
)

// A Phase is a phase of a job.
type Phase string

// The phases, in order.
const (
	Downloading Phase = "downloading" // Count of Total bytes, as far as known
	Discovering Phase = "discovering"
	Reserving   Phase = "reserving" // Count of Total slots
	Waiting     Phase = "waiting"   // for slots; Count of Total were available at the last attempt; Queue
	Staging     Phase = "staging"   // Count of Total bytes
	Starting    Phase = "starting"
	Running     Phase = "running"
	Collecting  Phase = "collecting"
	Releasing   Phase = "releasing"
)

// An Event is one event that may interest the user. Its Kind determines which fields are set.
type Event struct {
	Kind  Kind      `json:"event"`
	Time  time.Time `json:"time"`
	Job   string    `json:"job,omitempty"`
	Phase Phase     `json:"phase,omitempty"`
	Count int64     `json:"count,omitempty"`
	Total int64     `json:"total,omitempty"`
	// Rate, ETA and Slowest describe a transfer: the rate in bytes per second, the seconds until
	// the last byte arrives, and the ID of the peer that takes longest.
	Rate    float64    `json:"rate,omitempty"`
	ETA     float64    `json:"etaSeconds,omitempty"`
	Slowest string     `json:"slowest,omitempty"`
	Queue   *Queue     `json:"queue,omitempty"`
	Planned []Planned  `json:"planned,omitempty"`
	Placed  []Placed   `json:"placed,omitempty"`
	Rank    int        `json:"rank"`
	Stream  job.Stream `json:"stream,omitempty"`
	Data    []byte     `json:"data,omitempty"`
	Routes  []Route    `json:"routes,omitempty"`
	Choice  *Choice    `json:"choice,omitempty"`
	View    *view.View `json:"view,omitempty"`
	// By holds the IDs of the peers that requested the change of View; it is empty if they are
	// unknown.
	By []string `json:"by,omitempty"`
	// Record is the number of the last whole record in Data, counted from 1 in its rank's stream,
	// and Records is how many there are. If Record is 0, Data is the end of an unfinished line.
	Record  uint64 `json:"-"`
	Records uint64 `json:"-"`
	// Took is how long a rank was without one of its replicas, in nanoseconds.
	Took   time.Duration `json:"took,omitempty"`
	Text   string        `json:"text,omitempty"`
	Result *job.Result   `json:"result,omitempty"`
}

// After returns the event without the output records up to number shown, which the user has. ok is
// false if no output is left. An event without whole records stays as it is.
func (e Event) After(shown uint64) (rest Event, ok bool) {
	switch first := e.Record - max(1, e.Records) + 1; {
	case e.Record == 0 || shown < first:
		return e, true
	case shown >= e.Record:
		return e, false
	default:
		e.Data = e.Data[job.RecordsLen(e.Data, shown-first+1):]
		e.Records = e.Record - shown
		return e, true
	}
}

// source returns where an output event comes from.
func (e Event) source() job.Source { return job.Source{Rank: e.Rank, Stream: e.Stream} }

// numbers returns how many numbers an event takes in an EventQueue.
func (e Event) numbers() uint64 { return max(1, e.Records) }

// A Numbered is an event in an EventQueue. Each record of output has a number of its own, and Number is that
// of the last one.
type Numbered struct {
	Number uint64
	Event
}

// mostTogether is the most bytes of waiting output that are merged into one event.
const mostTogether = 64 << 10

// extend adds next to n if next is output that directly follows n's. It reports whether it did.
func (n *Numbered) extend(next Event) bool {
	follows := n.Kind == OutputEvent && next.Kind == OutputEvent && n.Rank == next.Rank && n.Stream == next.Stream &&
		n.Record > 0 && next.Record == n.Record+next.Records
	if !follows || len(n.Data)+len(next.Data) > mostTogether {
		return false
	}
	n.Data = append(n.Data, next.Data...)
	n.Number, n.Record, n.Records = n.Number+next.Records, next.Record, n.Records+next.Records
	return true
}

// spans reports whether n has records with numbers up to number, and others with later ones.
func (n Numbered) spans(number uint64) bool {
	return number < n.Number && number > n.Number-n.numbers()
}

// split divides n, which spans number, after the record with that number.
func (n Numbered) split(number uint64) (head, rest Numbered) {
	left := n.Number - number
	size := job.RecordsLen(n.Data, n.Records-left)
	head, rest = n, n
	head.Number, head.Record, head.Records, head.Data = number, n.Record-left, n.Records-left, n.Data[:size:size]
	rest.Records, rest.Data = left, n.Data[size:]
	return head, rest
}

// A Queue describes the position, in the queues of peers, of a job that waits for slots.
type Queue struct {
	Place int           `json:"place"` // median of the positions, from 1; 0: in no queue
	Of    int           `json:"of"`
	Left  time.Duration `json:"left"` // remaining time to wait, in nanoseconds
}

// Placed is the peer on which a process runs.
type Placed struct {
	view.Process
	Peer string `json:"peer"` // peer ID
}

// A Route describes how messages go from each process in From to each other process in To.
type Route struct {
	From  []view.Process `json:"from"`
	To    []view.Process `json:"to"`
	Kind  string         `json:"kind"`            // self, shm, tcp or stream; empty: unreachable
	Way   string         `json:"way,omitempty"`   // between two peers: direct, punched or relayed
	Relay string         `json:"relay,omitempty"` // ID of the relay, if any
	RTT   time.Duration  `json:"rtt,omitempty"`   // round-trip time between the peers, in nanoseconds; 0: not measured
	Why   string         `json:"why"`             // reason why no better route was chosen
}

// refuse reports the result of a job that was never started.
func refuse(events *EventQueue, r job.Result) job.Result {
	events.Put(Event{Kind: ResultEvent, Result: &r})
	events.finish()
	return r
}

package job

import (
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// A Kind says what an Event tells.
type Kind string

// The kinds of events.
const (
	PhaseEvent    Kind = "phase"    // Phase, and what is known of it
	ReplicasEvent Kind = "replicas" // Choice: what -r auto came to; Text
	PlannedEvent  Kind = "planned"  // Planned: where a job that is only tried would run; Text
	PlacedEvent   Kind = "placed"   // Placed: which process runs on which peer
	OutputEvent   Kind = "output"   // Rank, Stream, Data
	ViewEvent     Kind = "view"     // View and By, the peers that requested it; or Text: what happened to a process
	ChannelsEvent Kind = "channels" // Routes: how processes reach each other
	WarningEvent  Kind = "warning"  // Text
	HealEvent     Kind = "heal"     // Rank, Text; once it has its replica: Placed, Took
	KeptEvent     Kind = "kept"     // another process can go on with the job if this one is killed; Text
	ResultEvent   Kind = "result"   // Result; the last event
)

// A Phase is a part of a job's life.
type Phase string

// The phases, in order.
const (
	Downloading Phase = "downloading" // Count of Total bytes, as far as that is known
	Discovering Phase = "discovering"
	Reserving   Phase = "reserving" // Count of Total slots
	Waiting     Phase = "waiting"   // for slots; Count of Total could be had a moment ago; Queue
	Staging     Phase = "staging"   // Count of Total bytes
	Starting    Phase = "starting"
	Running     Phase = "running"
	Collecting  Phase = "collecting"
	Releasing   Phase = "releasing"
)

// An Event is one thing that the user may want to see. Which fields count
// depends on its Kind.
type Event struct {
	Kind  Kind      `json:"event"`
	Time  time.Time `json:"time"`
	Job   string    `json:"job,omitempty"`
	Phase Phase     `json:"phase,omitempty"`
	Count int64     `json:"count,omitempty"`
	Total int64     `json:"total,omitempty"`
	// Rate, ETA and Slowest are of bytes on their way: how many come in a second, how many seconds
	// it takes until the last is here, and the ID of the peer that this waits for.
	Rate    float64    `json:"rate,omitempty"`
	ETA     float64    `json:"etaSeconds,omitempty"`
	Slowest string     `json:"slowest,omitempty"`
	Queue   *Queue     `json:"queue,omitempty"`
	Planned []Planned  `json:"planned,omitempty"`
	Placed  []Placed   `json:"placed,omitempty"`
	Rank    int        `json:"rank"`
	Stream  Stream     `json:"stream,omitempty"`
	Data    []byte     `json:"data,omitempty"`
	Routes  []Route    `json:"routes,omitempty"`
	Choice  *Choice    `json:"choice,omitempty"`
	View    *view.View `json:"view,omitempty"`
	// By holds the IDs of the peers at whose request View has changed; it is empty if they are unknown.
	By []string `json:"by,omitempty"`
	// Record is the number of the last whole record of output in Data, in its rank's stream, from 1
	// on; Records is how many there are. Record 0: Data is the end of an unfinished line.
	Record  uint64 `json:"-"`
	Records uint64 `json:"-"`
	// Took is how long a rank was without one of its replicas, in nanoseconds.
	Took   time.Duration `json:"took,omitempty"`
	Text   string        `json:"text,omitempty"`
	Result *Result       `json:"result,omitempty"`
}

// After returns the event without the records of output up to a number, which the user has. It is
// not ok if nothing is left. What is no whole record is left as it is.
func (e Event) After(shown uint64) (rest Event, ok bool) {
	switch first := e.Record - max(1, e.Records) + 1; {
	case e.Record == 0 || shown < first:
		return e, true
	case shown >= e.Record:
		return e, false
	default:
		for range shown - first + 1 {
			e.Data = e.Data[jobpb.RecordLen(e.Data):]
		}
		e.Records = e.Record - shown
		return e, true
	}
}

// A Queue is how a job that waits for slots stands in the queues of peers.
type Queue struct {
	Place int           `json:"place"` // from 1 on, in half of the queues a better one; 0: in none
	Of    int           `json:"of"`
	Left  time.Duration `json:"left"` // to wait, in nanoseconds
}

// Placed says where a process runs.
type Placed struct {
	view.Process
	Peer string `json:"peer"` // peer ID
}

// A Route says how messages go from each of some processes to each of others,
// other than itself.
type Route struct {
	From  []view.Process `json:"from"`
	To    []view.Process `json:"to"`
	Kind  string         `json:"kind"`            // self, shm, tcp or stream; empty: there is no way
	Way   string         `json:"way,omitempty"`   // between two peers: direct, punched or relayed
	Relay string         `json:"relay,omitempty"` // the peer that it goes through, if any
	RTT   time.Duration  `json:"rtt,omitempty"`   // round trip between the peers, in nanoseconds; 0: not measured
	Why   string         `json:"why"`             // why it is this, and nothing better
}

// A Stream is one of the two outputs of a process.
type Stream int

// The streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// A Result is how a job ended: the exit status of p2prun and a sentence.
type Result struct {
	Status  int    `json:"status"`
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"` // what the user can do
	// Limit is one of the peers' owners; all replicas of a rank have exceeded one, such as memory.
	Limit string `json:"limit,omitempty"`
	// Shortage says more of StatusShortage, where there were peers to ask.
	Shortage *Shortage `json:"shortage,omitempty"`
}

// The exit statuses that are not the program's own.
const (
	StatusOK        = 0
	StatusUsage     = 64  // wrong usage or bad input
	StatusDiverged  = 65  // replicas of a rank have not done the same
	StatusShortage  = 69  // not enough peers in time
	StatusLost      = 70  // a rank lost all its replicas, or the job is cut off from most of its peers
	StatusTimeout   = 75  // the job took longer than --timeout
	StatusCancelled = 130 // by the user
)

// maxStatus is the largest exit status that can be the program's own and the
// job's; those above mean something to shells.
const maxStatus = 125

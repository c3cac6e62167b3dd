//go:build !wasip1

package proclink

import (
	"time"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// FDVariable is the environment variable with the number of the descriptor that a process inherits. Without this
// variable a program runs as a world of one process.
const FDVariable = "P2PMPI_FD"

// A Type is the type of a Message.
type Type string

// The messages from a process to its peer, with the fields that each uses.
const (
	Hello      Type = "hello"     // Version
	Init       Type = "init"      // Key: this process's public key; the program called mpj.Init
	Open       Type = "open"      // Process, Kind (optional): requests a channel to the process
	Pong       Type = "pong"      // Count
	LogDropped Type = "unkept"    // Text, Lapsed: why this process can no longer bring a new replica up to date
	Healed     Type = "healed"    // Count, Bytes of the messages replayed to this process, which has caught up
	Flush      Type = "flush"     // Count: requests an answer when the user has all output; with Records: the process resumes after these records
	Finalized  Type = "finalized" // Summed, Sums; every message of this process has arrived wherever it is needed
	Abort      Type = "abort"     // Code, Text; aborts the whole job
	Ahead      Type = "ahead"     // this process has long been ahead of its rank's master
	Stalled    Type = "stalled"   // this process, a master, waits for other replicas to receive an outcome
	UpToDate   Type = "uptodate"  // UpToDate; this process, which is set aside in the view, no longer lacks anything
	Diverged   Type = "diverged"  // Divergence between this process's message and that of a receiver
)

// The messages from a peer to its process, with the fields that each uses.
const (
	Setup   Type = "setup"   // Job, Process (the receiver), View, Crowded, Heal, Joining; with Kind Shm: Cell, descriptor
	Start   Type = "start"   // View, Places, ToleratedHang; every process has called mpj.Init
	Update  Type = "view"    // View: the next view
	Channel Type = "channel" // Process, Kind, descriptor; with Kind Shm: Cell, with TCP: Key; answers Open
	Refused Type = "refused" // Process, Text; answers Open
	Accept  Type = "accept"  // Process (the sender), Kind, descriptor; with Kind Shm: Cell, with TCP: Key
	Ping    Type = "ping"    // Count
	Reopen  Type = "reopen"  // Process: the channel to it has to be reopened, because it may be broken or inferior to another route
	Flushed Type = "flushed" // Count, Records; answers Flush; without Records: a line is incomplete
	Bye     Type = "bye"     // answers Finalized
)

// KeySize is the length in bytes of a process's public key (Ed25519).
const KeySize = 32

// A Message is one control message. Its Type determines which fields are used.
type Message struct {
	Type    Type          `json:"type"`
	Version int           `json:"version,omitempty"`
	Job     string        `json:"job,omitempty"`
	Process *view.Process `json:"process,omitempty"`
	View    *view.View    `json:"view,omitempty"`
	Count   uint64        `json:"count,omitempty"`
	Code    int           `json:"code,omitempty"`
	Text    string        `json:"text,omitempty"`
	Kind    Kind          `json:"kind,omitempty"`
	// Cell is the number of a process's doorbell on the board of its job and peer: in a Setup the
	// receiver's own, in a Channel or Accept that of Process.
	Cell int `json:"cell,omitempty"`
	// Key is a process's public key: in an Init the sender's own, in a Channel or Accept that of Process.
	Key []byte `json:"key,omitempty"`
	// Places contains, for each rank, the numbers of its machine and of its cluster of nearby machines. It is
	// empty if they are unknown.
	Places [][2]int `json:"places,omitempty"`
	// ToleratedHang is the job's tolerated silence of a peer, in nanoseconds.
	ToleratedHang time.Duration `json:"bears,omitempty"`
	// Crowded reports that the job has more processes on this machine than processors, so waiting
	// processes should not spin.
	Crowded bool `json:"crowded,omitempty"`

	// Heal reports that lost replicas are replaced while the job runs. Joining reports that this process
	// is such a replacement, and that its rank is already running.
	Heal    bool   `json:"heal,omitempty"`
	Joining bool   `json:"joining,omitempty"`
	Bytes   uint64 `json:"bytes,omitempty"`
	// Lapsed reports that the condition lasts only until the program's next checkpoint.
	Lapsed bool `json:"lapsed,omitempty"`

	// Records contains the numbers of records of standard output and standard error that the user has received.
	Records *[2]uint64 `json:"records,omitempty"`

	Divergence *protection.Divergence `json:"divergence,omitempty"`

	UpToDate *protection.UpToDate `json:"uptodate,omitempty"`

	// Sums summarizes everything that a process has sent. Summed reports that Sums is known.
	Summed bool             `json:"summed,omitempty"`
	Sums   []protection.Sum `json:"sums,omitempty"`
}

func (m Message) carriesDescriptor() bool {
	switch m.Type {
	case Channel, Accept:
		return true
	case Setup:
		return m.Kind == Shm
	}
	return false
}

//go:build !wasip1

package proclink

import (
	"time"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// FDVariable is the environment variable that tells a process the number of
// its inherited descriptor. Without it a program runs as a world of one.
const FDVariable = "P2PMPI_FD"

// A Type says what a Message is.
type Type string

// The messages of a process to its peer.
const (
	Hello     Type = "hello"     // Version
	Init      Type = "init"      // the program called mpj.Init; Key: this process's
	Open      Type = "open"      // Process: wants a channel to it; of Kind, if that is said
	Pong      Type = "pong"      // Count
	Unkept    Type = "unkept"    // Text: why this process can bring no new replica up to date any more, if not Lapsed
	Healed    Type = "healed"    // Count, Bytes of the messages that it was given anew: who has joined does what its rank does
	Flush     Type = "flush"     // Count; wants to know when the user has all that it has printed; with Records: goes on behind them
	Finalized Type = "finalized" // everything it owed to others is delivered; with Summed: Sums
	Abort     Type = "abort"     // Code, Text: ends the whole job
	Ahead     Type = "ahead"     // this process has long been ahead of its rank's master
	Stalled   Type = "stalled"   // this process, a master, waits for other replicas to receive an outcome
	UpToDate  Type = "uptodate"  // UpToDate: this process, which is set aside in the view, lacks nothing any more
	Diverged  Type = "diverged"  // Divergence: this process has produced another message than a receiver has got, or not
)

// The messages of a peer to its process.
const (
	Setup   Type = "setup"   // Job, Process (who you are), View, Crowded, Heal, Joining; with Kind Shm: Cell, descriptor of the board
	Start   Type = "start"   // View, Places, Bears: every process has called mpj.Init
	Update  Type = "view"    // View: a newer one
	Channel Type = "channel" // Process, Kind, descriptor; with Kind Shm: Cell, with TCP: Key: answers Open
	Refused Type = "refused" // Process, Text: answers Open
	Accept  Type = "accept"  // Process (who sends), Kind, descriptor; with Kind Shm: Cell, with TCP: Key
	Ping    Type = "ping"    // Count
	Reopen  Type = "reopen"  // Process: the channel to it is to be opened anew, since it may not work, or there is a better way
	Flushed Type = "flushed" // Count, Records: answers Flush; without Records: a line is not finished
	Bye     Type = "bye"     // answers Finalized
)

// KeySize is the length in bytes of a process's public key (Ed25519).
const KeySize = 32

// A Message is one control message. Which fields count depends on its Type.
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
	// Cell is the number of a process's bell on the board of its job and peer:
	// in a Setup its own, in a Channel or Accept that of Process.
	Cell int `json:"cell,omitempty"`
	// Key is a process's public key: in an Init its own, in a Channel or Accept
	// that of Process.
	Key []byte `json:"key,omitempty"`
	// Places says where the ranks run: for each a machine and a cluster of
	// machines that are near each other, as numbers. Empty: nobody knows.
	Places [][2]int `json:"places,omitempty"`
	// Bears is for how long the job bears with a peer that is silent, in nanoseconds.
	Bears time.Duration `json:"bears,omitempty"`
	// Crowded says that the job has more processes on this machine than there
	// are processors: who waits should not spin.
	Crowded bool `json:"crowded,omitempty"`

	// Heal says that replicas that are lost are replaced while the job runs, Joining
	// that this process replaces one: the program's rank is somewhere in the middle.
	Heal    bool   `json:"heal,omitempty"`
	Joining bool   `json:"joining,omitempty"`
	Bytes   uint64 `json:"bytes,omitempty"`
	// Lapsed says that it is so only until the program's next checkpoint.
	Lapsed bool `json:"lapsed,omitempty"`

	// Records are how many records of output the user has, and of standard error.
	Records *[2]uint64 `json:"records,omitempty"`

	Divergence *protection.Divergence `json:"divergence,omitempty"`

	UpToDate *protection.UpToDate `json:"uptodate,omitempty"`

	// Sums are what a process has sent in all, if it knows: Summed.
	Summed bool             `json:"summed,omitempty"`
	Sums   []protection.Sum `json:"sums,omitempty"`
}

// carriesDescriptor reports whether m comes with a descriptor.
func (m Message) carriesDescriptor() bool {
	switch m.Type {
	case Channel, Accept:
		return true
	case Setup:
		return m.Kind == Shm
	}
	return false
}

package proclink

import "github.com/p2pmpi/p2pmpi/internal/view"

// FDVariable is the environment variable that tells a process the number of
// its inherited descriptor. Without it a program runs as a world of one.
const FDVariable = "P2PMPI_FD"

// A Type says what a Message is.
type Type string

// The messages of a process to its peer.
const (
	Hello     Type = "hello"     // Version
	Init      Type = "init"      // the program called mpj.Init
	Open      Type = "open"      // Process: wants a channel to it
	Pong      Type = "pong"      // Count
	Finalized Type = "finalized" // everything it owed to others is delivered
	Abort     Type = "abort"     // Code, Text: ends the whole job
)

// The messages of a peer to its process.
const (
	Setup   Type = "setup"   // Job, Process (who you are), View, Crowded; with Kind Shm: Cell, descriptor of the board
	Start   Type = "start"   // View: every process has called mpj.Init
	Update  Type = "view"    // View: a newer one
	Channel Type = "channel" // Process, Kind, descriptor; with Kind Shm: Cell: answers Open
	Refused Type = "refused" // Process, Text: answers Open
	Accept  Type = "accept"  // Process (who sends), Kind, descriptor; with Kind Shm: Cell
	Ping    Type = "ping"    // Count
	Bye     Type = "bye"     // answers Finalized
)

// A Kind says what the descriptor of a channel is.
type Kind string

// The kinds of channels between processes, best first.
const (
	Shm    Kind = "shm"    // a ring of shared memory
	TCP    Kind = "tcp"    // a TCP connection on which the processes speak TLS
	Stream Kind = "stream" // a socket pair, bridged by the peers or shared
)

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
	// Crowded says that the job has more processes on this machine than there
	// are processors: who waits should not spin.
	Crowded bool `json:"crowded,omitempty"`
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

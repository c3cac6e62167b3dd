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
	Setup   Type = "setup"   // Job, Process (who you are), View
	Start   Type = "start"   // View: every process has called mpj.Init
	Update  Type = "view"    // View: a newer one
	Channel Type = "channel" // Process, descriptor: answers Open
	Refused Type = "refused" // Process, Text: answers Open
	Accept  Type = "accept"  // Process (who sends), descriptor
	Ping    Type = "ping"    // Count
	Bye     Type = "bye"     // answers Finalized
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
}

// carriesDescriptor reports whether messages of type t come with a descriptor.
func (t Type) carriesDescriptor() bool { return t == Channel || t == Accept }

package job

// A Reason is the short reason why a peer does not take part in a job.
type Reason string

// The reasons, in the order in which they are listed.
const (
	Busy         Reason = "busy"
	Denied       Reason = "denied"
	WasmOnly     Reason = "wasm only"
	Unconfined   Reason = "unconfined"
	Paused       Reason = "paused"
	NoDisk       Reason = "no disk"
	Versions     Reason = "version"
	Platforms    Reason = "other platform"
	TooSmall     Reason = "too small"
	NotChosen    Reason = "not chosen"
	Unreachable  Reason = "unreachable"
	NoAnswer     Reason = "no answer"
	Leaving      Reason = "leaving"
	HoldEnded    Reason = "hold ended"
	Unfit        Reason = "could not run it"
	OtherNetwork Reason = "other network"
	SameMachine  Reason = "same machine"
	Nonsense     Reason = "bad offer"
)

// meanings explains each reason in a sentence.
var meanings = []struct {
	Reason
	text string
}{
	{Busy, "no slot is free, or it accepts no further job"},
	{Denied, "its owner does not admit you"},
	{WasmOnly, "its owner accepts no native programs from you"},
	{Unconfined, "cannot confine programs as its owner wants"},
	{Paused, "its owner needs it now"},
	{NoDisk, "too little free disk space for a job"},
	{Versions, "has another protocol version: upgrade the older release"},
	{Platforms, "no program for its platform, or excluded by --os or --arch"},
	{TooSmall, "has less memory for a slot than --min-memory"},
	{NotChosen, "excluded by --peer, --not-peer or --only-mine"},
	{Unreachable, "no connection to it"},
	{NoAnswer, "connected, but did not answer in time"},
	{Leaving, "its owner takes it back"},
	{HoldEnded, "its slots were held too long before use"},
	{Unfit, "could not stage or start the job"},
	{OtherNetwork, "belongs to another network"},
	{SameMachine, "another peer of its machine takes part"},
	{Nonsense, "its offer is invalid, or its clock is wrong"},
}

// Reasons returns all reasons, in the order in which they are listed.
func Reasons() (all []Reason) {
	for _, m := range meanings {
		all = append(all, m.Reason)
	}
	return all
}

// Meaning returns the explanation of r.
func (r Reason) Meaning() string {
	for _, m := range meanings {
		if m.Reason == r {
			return m.text
		}
	}
	return ""
}

// A Shortage describes why a job cannot start.
type Shortage struct {
	Wanted    int      `json:"wanted"`    // slots needed
	Available int      `json:"available"` // slots available at once
	Tallies   []Tally  `json:"reasons"`   // numbers of peers that gave no slot
	Peers     []Passed `json:"peers"`     // the first of these peers
}

// A Tally is the number of peers with one reason.
type Tally struct {
	Reason Reason `json:"reason"`
	Peers  int    `json:"peers"`
}

// Passed is a peer that does not take part in a job.
type Passed struct {
	Peer   string `json:"peer"` // peer ID
	Reason Reason `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

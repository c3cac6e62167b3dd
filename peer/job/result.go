package job

// A Stream is one of the two output streams of a process.
type Stream int

// The streams.
const (
	Stdout Stream = 1
	Stderr Stream = 2
)

// A Source is one output stream of a rank.
type Source struct {
	Rank   int
	Stream Stream
}

// A Result is the outcome of a job: the exit status of p2prun and a message.
type Result struct {
	Status  int    `json:"status"`
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"` // advice to the user
	// Limit names a limit of the peers' owners, such as memory, that all replicas of a rank have
	// exceeded.
	Limit string `json:"limit,omitempty"`
	// Shortage explains StatusShortage, if there were peers to ask.
	Shortage *Shortage `json:"shortage,omitempty"`
}

// The exit statuses that are not the program's own.
const (
	StatusOK        = 0
	StatusUsage     = 64  // wrong usage or bad input
	StatusDiverged  = 65  // replicas of a rank diverged
	StatusShortage  = 69  // not enough slots in time
	StatusLost      = 70  // a rank lost all its replicas, or most peers of the job are out of reach
	StatusTimeout   = 75  // the job took longer than --timeout
	StatusCancelled = 130 // by the user
)

// maxStatus is the largest exit status of a program that becomes the job's. Shells give larger ones
// a meaning of their own.
const maxStatus = 125

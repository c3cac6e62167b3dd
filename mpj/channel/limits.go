package channel

// Limits say how an engine sends a message of a certain length, in bytes, on a
// channel.
type Limits struct {
	// Copied is the longest message that goes at once, with a copy of its payload
	// where the channel cannot take it at once. Above it the sender's wait for the
	// receiver costs less than the copy.
	Copied int
	// Pinned is the longest message that goes at once from the program's buffer,
	// which the sender has back when the receiver has it. Longer ones wait to be
	// asked for. A ring in shared memory has nothing of that kind.
	Pinned int
}

var (
	shmLimits    = Limits{Copied: 64 << 10}
	tcpLimits    = Limits{Copied: 64 << 10, Pinned: 1 << 20}
	streamLimits = Limits{Copied: 64 << 10, Pinned: 1 << 20}
)

// Limits returns those of shared memory.
func (s *ShmSender) Limits() Limits { return shmLimits }

func (s *tcpSender) Limits() Limits { return tcpLimits }

func (s *streamSender) Limits() Limits { return streamLimits }

func (s selfSender) Limits() Limits { return streamLimits }

package channel

// Limits are the message lengths, in bytes, at which an engine changes the method of sending on a
// channel.
type Limits struct {
	// Copied is the longest message sent at once with a copy of its payload, if the channel cannot
	// accept the payload immediately. For longer messages, waiting for the receiver costs less than
	// the copy.
	Copied int
	// Pinned is the longest message sent at once from the program's buffer. The program may reuse
	// the buffer when the receiver has the message. Longer messages wait until the receiver requests
	// them. A ring in shared memory has no pinned messages.
	Pinned int
}

// Half a round trip of two processes on two processors, in µs, measured in one quiet run. For each
// method of sending, other limits forced the method for all lengths:
//
//	p2prun -n 2 -a spread --channels tcp prog latency:65536:100 ...
//
// (-a concentrate --channels shm) with prog from e2e/bench/prog:
//
//	                  8 KiB   16 KiB   32 KiB   64 KiB  128 KiB  256 KiB  512 KiB    1 MiB
//	shm    copied       2.0      4.4      5.3      7.4       12       24       66      421
//	       asked        3.0      4.8      6.4      9.3       13       23       42      106
//	tcp    copied        14       24       35       65      180      272      532     1307
//	       pinned        24       39       56       88      184      236      470      729
//	       asked         32       43       62       82      108      217      356      703
//	stream copied        51       78       97      158      278      450      776     1629
//	       pinned        63      103      118      149      234      369      696     1362
//	       asked        134      151      182      248      306      474      806     1846
//
// Over shared memory, copies and requests are equally fast at 128 and 256 KiB, and the receiver can
// read a requested payload in place. Over sockets, a program that only sends can reuse its buffer
// sooner after a copy, so messages are copied while that is about as fast. Over TCP, requests are
// not slower from 128 KiB on, but only on loopback: a real link adds its round trip. Therefore tcp
// has the same limits as streams, where a request passes through two peers.
var (
	shmLimits    = Limits{Copied: 64 << 10}
	tcpLimits    = Limits{Copied: 64 << 10, Pinned: 1 << 20}
	streamLimits = Limits{Copied: 64 << 10, Pinned: 1 << 20}
)

// Limits returns the limits for shared memory.
func (s *ShmSender) Limits() Limits { return shmLimits }

func (s *tcpSender) Limits() Limits { return tcpLimits }

func (s *streamSender) Limits() Limits { return streamLimits }

func (s selfSender) Limits() Limits { return streamLimits }

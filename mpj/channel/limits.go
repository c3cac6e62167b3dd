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

// Half a round trip of two processes on two processors, in µs, with each way forced
// for all lengths by other limits, in one quiet run of
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
// Over shared memory the two are alike at 128 and 256 KiB, and what is asked for can
// be read where it is. Over sockets, a program that only sends has its buffer back
// sooner from a copy, so they are copied as long as that is about as fast. Asking is
// no slower over TCP from 128 KiB on, but that is on loopback: a real link adds its
// round trip, so tcp has the limit of streams, where asking passes two peers.
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

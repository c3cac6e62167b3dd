// Package channel transports frames from one process of a job to another. A frame is a fixed header
// and a payload, and arrives whole and in order. A channel is unidirectional and has one Sender and
// one Receiver.
//
//	engine -> Sender ==== self | shm | tcp | stream ==== Receiver -> engine
//
// self stays within the process. shm is a ring in memory that two processes on one machine share.
// It can be polled, and its processes sleep on bells:
//
//	TrySend     payload -> bulk    header -> cell    stamp    ring
//	TryReceive                             look at stamp -> header, payload
//	if idle     Arm    look again    Sleep
//	ReadMemory  payload -> its destination, bypassing the ring: see shmread.go
//
// tcp is a connection that the peers establish and pass to the two processes, which use TLS 1.3 on
// it. Each process has the other's public key from the job's membership table, and accepts no other
// key:
//
//	Send      header, payload -> one record, one write
//	          long payload -> records, directly from its buffer
//	Receive   first: prove keys    records -> header, payload into its buffer
//
// A goroutine that waits for a record blocks in the system call that reads it, not in the runtime's
// poller; see tcpsocket_linux.go.
//
// stream is a pipe through memory that a process shares with its peer. If the other process is on
// another peer, the peer forwards the bytes to a libp2p stream; the process itself has no network
// access. On systems other than Linux, a pipe is a socket pair:
//
//	process  Send -> ring =====> peer =====> libp2p stream =====> peer ...
//	peer     libp2p stream =====> ring -> Receive               process
//
// All kinds pass one shared test suite.
//
// A channel delivers frames whole and in order until it breaks, and reports the break. It does not
// guarantee that a sent frame has arrived; the protocols of package protection do.
package channel

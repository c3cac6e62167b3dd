// Package channel carries frames from one process of a job to another: a fixed
// header and a payload, whole and in order. A channel goes one way and has one
// Sender and one Receiver.
//
//	engine -> Sender ==== self | shm | tcp | stream ==== Receiver -> engine
//
// self stays within the process. shm is a ring in memory that two processes of
// one machine share; it can be polled, and its processes sleep on bells:
//
//	TrySend   payload -> bulk    header -> cell    stamp    Ring
//	TryReceive                             look at stamp -> header, payload
//	nothing?  Arm    look again    Sleep
//	ReadMemory     payload -> its place, past the ring: see shmread.go
//
// tcp is a connection that the peers make and hand over, on which the two
// processes speak TLS 1.3. Each knows the other's public key from the job's
// membership table and talks to nobody else:
//
//	Send      header, payload -> one record, one write
//	          long payload -> records, straight from where it is
//	Receive   first: keys proved    records -> header, payload in its place
//
// Who waits for a record does so in the system call that reads it, not in the
// runtime's poller: tcpsocket_linux.go.
//
// stream is a pipe through memory that a process shares with its peer, which
// carries the bytes to a libp2p stream when the other process is on another peer;
// the process itself owns no network rights. Elsewhere than on Linux a pipe is a
// socket pair:
//
//	process  Send -> ring =====> peer =====> libp2p stream =====> peer ...
//	peer     libp2p stream =====> ring -> Receive               process
//
// All kinds pass one shared test suite.
//
// A channel promises order and wholeness while it lives, and says so when it
// breaks. It does not promise that a frame that was sent has arrived: that is
// the business of package protection above it.
package channel

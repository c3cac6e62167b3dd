package relay

import (
	"time"

	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
)

// Limits are the limits of a relay.
type Limits struct {
	// Peers is the maximum number of peers with reservations. 0 disables the relay.
	Peers int
	// Bytes bounds the data of a circuit in each direction; 0 means no limit.
	Bytes int64
	// Time bounds the duration of a circuit; 0 means no limit.
	Time time.Duration
}

// CircuitsPerPeer is the maximum number of circuits of a peer: enough for one to each other peer of a large job.
const CircuitsPerPeer = 128

// peersPerAddress is the maximum number of reservations from one address, which may be the address of the router
// of a laboratory.
const peersPerAddress = 64

// bufferSize is the size of the buffer for each direction of a circuit, in bytes. With libp2p's default of
// 2 KiB, a circuit has two thirds of the throughput.
const bufferSize = 64 << 10

// MemoryPerCircuit is the memory that a relay needs for one circuit, in bytes.
const MemoryPerCircuit = 2 * bufferSize

// resources converts the limits to libp2p's type.
func (l Limits) resources() relay.Resources {
	return relay.Resources{
		ReservationTTL:        reservationTime,
		MaxReservations:       l.Peers,
		MaxCircuits:           CircuitsPerPeer,
		BufferSize:            bufferSize,
		MaxReservationsPerIP:  min(l.Peers, peersPerAddress),
		MaxReservationsPerASN: l.Peers,
	}
}

// reservationTime is the time after which a reservation expires unless it is renewed.
const reservationTime = time.Hour

package relay

import (
	"time"

	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
)

// Limits are the limits of a relay.
type Limits struct {
	// Peers is the number of peers that may be reached through this one; 0 disables the relay.
	Peers int
	// Bytes bounds the data of a circuit in each direction; 0 means no limit.
	Bytes int64
	// Time bounds the duration of a circuit; 0 means no limit.
	Time time.Duration
}

// CircuitsPerPeer is the number of circuits that a peer may have: one to each other peer of a large job.
const CircuitsPerPeer = 128

// peersPerAddress is the number of peers with reservations behind one address, such as a laboratory behind
// a router.
const peersPerAddress = 64

// bufferSize is the buffer of each direction of a circuit, in bytes. libp2p's default of 2 KiB has two
// thirds of the throughput.
const bufferSize = 64 << 10

// MemoryPerCircuit is the memory of a relay for one circuit, in bytes.
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

// reservationTime is the duration of a reservation that is not renewed.
const reservationTime = time.Hour

package relay

import (
	"time"

	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
)

// Limits are what a relay gives.
type Limits struct {
	// Peers is how many may be reached through this one; with 0 it is no relay.
	Peers int
	// Bytes bounds what a circuit carries each way, 0 for no limit.
	Bytes int64
	// Time bounds how long a circuit lasts, 0 for no limit.
	Time time.Duration
}

// CircuitsPerPeer is how many circuits a peer may have: one to each other peer of a
// large job.
const CircuitsPerPeer = 128

// peersPerAddress is how many peers behind one address may be reached: a laboratory
// behind a router.
const peersPerAddress = 64

// bufferSize is that of each direction of a circuit, in bytes. Libp2p's 2 KiB carry
// two thirds of this.
const bufferSize = 64 << 10

// MemoryPerCircuit is what a relay holds for a circuit, in bytes.
const MemoryPerCircuit = 2 * bufferSize

// resources are the limits in libp2p's words.
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

// reservationTime is how long a reservation lasts that is not renewed.
const reservationTime = time.Hour

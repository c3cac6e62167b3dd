package launch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/net/connection"
)

// machineOf returns a name of this machine for the peers of one job. Two peers on this machine return the
// same name, and the name does not identify the machine to anyone else. It is nil if the system does not
// provide an ID.
func machineOf(job string) []byte {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil
	}
	// A network namespace counts as a separate machine: its links may add any delay.
	namespace, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "p2pmpi machine %s %s %s", job, boot, namespace))
	return sum[:machineSize]
}

const (
	// machineSize is the length in bytes of the name of a machine.
	machineSize = 16

	// measureTimeout bounds the measurement of distances.
	measureTimeout = time.Second
)

// measure returns the round-trip times of h to those of the other peers that answer.
func measure(ctx context.Context, h host.Host, peers []p2ppeer.ID) (out []*jobpb.Distance) {
	if len(peers) > jobpb.MaxMeasured {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	var mu sync.Mutex
	var measuring sync.WaitGroup
	for _, peer := range peers {
		if peer == h.ID() {
			continue
		}
		measuring.Go(func() {
			rtt, ok := connection.RoundTrip(ctx, h, peer)
			if !ok {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, &jobpb.Distance{Peer: []byte(peer), RoundTripUs: uint32(rtt.Microseconds())})
		})
	}
	measuring.Wait()
	return out
}

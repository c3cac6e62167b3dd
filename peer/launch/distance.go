package launch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"sync"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/peer/internal/connection"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// machineOf names this machine to the peers of one job: two peers on it say the
// same, and what they say tells nobody else which machine it is. Empty where
// the system does not say.
func machineOf(job string) []byte {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil
	}
	// A network namespace is as far away as its links say.
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

	// measureTimeout is how long that may take.
	measureTimeout = time.Second
)

// measure returns how far the job's other peers are, those that answer.
func (j *job) measure(ctx context.Context, peers []p2ppeer.ID) (out []*jobpb.Distance) {
	if len(peers) > jobpb.MaxMeasured {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	var mu sync.Mutex
	var measuring sync.WaitGroup
	for _, peer := range peers {
		if peer == j.service.host.ID() {
			continue
		}
		measuring.Go(func() {
			rtt, ok := connection.RoundTrip(ctx, j.service.host, peer)
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

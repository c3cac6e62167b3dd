package reservation

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

// machineSize is the length in bytes of a machine's name, which is written in hexadecimal.
const machineSize = 16

// machineName returns the name of a machine for the submitter of one job. All peers on the machine give
// the same name, but names for different jobs cannot be compared. The name is a keyed hash whose key is
// the machine's identity.
func machineName(identity string, job Name) string {
	if identity == "" {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(identity))
	fmt.Fprintf(mac, "p2pmpi reservation %q %q", job.Submitter, job.Job)
	return hex.EncodeToString(mac.Sum(nil)[:machineSize])
}

// merge combines the peers of each machine into one, so that a Strategy never puts two replicas of a rank
// on one machine. A peer whose machine is unknown counts as a machine of its own. of lists the peers of
// each machine, in order. Machines are ordered by their first peer.
func merge(peers []PeerSlots, n int) (merged []PeerSlots, of [][]int) {
	index := make(map[string]int)
	for i, p := range peers {
		p.Slots = usable(p.Slots, n)
		k, known := index[p.Machine]
		if p.Machine == "" || !known {
			index[p.Machine] = len(merged)
			merged, of = append(merged, p), append(of, []int{i})
			continue
		}
		m := &merged[k]
		m.Slots, m.Cached = usable(m.Slots+p.Slots, n), m.Cached+p.Cached
		m.Speed, m.RTT = max(m.Speed, p.Speed), min(m.RTT, p.RTT)
		m.Domain.Addresses = slices.Concat(m.Domain.Addresses, p.Domain.Addresses)
		of[k] = append(of[k], i)
	}
	return merged, of
}

// share distributes a machine's processes to its peers in order. Each peer gets as many as it has slots.
func (a Assignment) share(processes []view.Process, on []int, peers []PeerSlots) {
	for _, i := range on {
		k := min(len(processes), max(0, peers[i].Slots))
		a[i], processes = processes[:k:k], processes[k:]
	}
}

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

// machineName names a machine to the submitter of one job. Two peers on it give the same name, and
// names given to two jobs cannot be compared: a keyed hash, whose key is the machine's identity.
func machineName(identity string, job Name) string {
	if identity == "" {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(identity))
	fmt.Fprintf(mac, "p2pmpi reservation %q %q", job.Submitter, job.Job)
	return hex.EncodeToString(mac.Sum(nil)[:machineSize])
}

// merge makes one peer of those on one machine, for a Strategy to deal with: two replicas of a rank are
// then never on it. A peer whose machine is unknown is on one of its own. of has the peers of each
// machine, in order; the machines come in the order of the first peer of each.
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

// share deals out a machine's processes to its peers, to each in order as many as it has slots.
func (a Assignment) share(processes []view.Process, on []int, peers []PeerSlots) {
	for _, i := range on {
		k := min(len(processes), max(0, peers[i].Slots))
		a[i], processes = processes[:k:k], processes[k:]
	}
}

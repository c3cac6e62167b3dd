package connected

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
)

// maxRememberedFile bounds the file of known peers, in bytes. The file is read as a whole.
const maxRememberedFile = 1 << 20

// remembered is the JSON form of one known peer.
type remembered struct {
	Peer    p2ppeer.ID `json:"peer"`
	Addrs   []string   `json:"addrs"`
	Met     time.Time  `json:"met"`
	Reached bool       `json:"reached"` // dialled by this peer
}

// recall reads the known peers from file. It ignores invalid content, because the file holds only hints
// and must not keep the peer from starting.
func recall(file string, now time.Time) (*knownPeers, error) {
	q := newKnownPeers()
	if file == "" {
		return q, nil
	}
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() > maxRememberedFile {
		return q, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the known peers: %w", err)
	}
	var all []remembered
	if json.Unmarshal(data, &all) != nil {
		return q, nil
	}
	for _, r := range all {
		if r.Peer.Validate() == nil && !r.Met.IsZero() && now.Sub(r.Met) < forgetAfter {
			q.met(p2ppeer.AddrInfo{ID: r.Peer, Addrs: parseAddrs(r.Addrs)}, r.Reached, r.Met)
		}
	}
	q.changes = 0
	return q, nil
}

func parseAddrs(texts []string) (addrs []ma.Multiaddr) {
	for _, text := range texts[:min(len(texts), maxAddrs)] {
		if a, err := ma.NewMultiaddr(text); err == nil {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// remember writes the known peers that were met to file. A crash leaves the old or the new file.
func (q *knownPeers) remember(file string) error {
	all := []remembered{}
	for _, a := range q.list() {
		if a.met.IsZero() {
			continue
		}
		r := remembered{Peer: a.info.ID, Met: a.met.UTC(), Reached: a.reached}
		for _, addr := range a.info.Addrs {
			r.Addrs = append(r.Addrs, addr.String())
		}
		all = append(all, r)
	}
	data, err := json.MarshalIndent(all, "", " ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(file, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write the known peers: %w", err)
	}
	return nil
}

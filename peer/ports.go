package peer

import (
	"encoding/json"
	"fmt"
	"os"

	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
)

// Peers that were met look for this one where they met it. So a port of the system's choice
// stays the same from one start to the next, if it is free: all can restart, without any
// supernode, and meet again.

// recallPorts returns the addresses to listen on, with the ports in file for those that ask
// for any. What makes no sense in it is passed over.
func recallPorts(file string, listen []string) []string {
	var kept map[string]string
	data, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(data, &kept) != nil {
		return listen
	}
	out := make([]string, len(listen))
	for i, asked := range listen {
		out[i] = asked
		a, err := ma.NewMultiaddr(kept[asked])
		if err == nil && withoutPort(a.String()) == asked && portsFree([]ma.Multiaddr{a}) == nil {
			out[i] = kept[asked]
		}
	}
	return out
}

// keepPorts writes to file where the host listens instead of on the addresses asked for.
func keepPorts(file string, asked []string, listens []ma.Multiaddr) error {
	kept := make(map[string]string)
	for _, a := range asked {
		for _, l := range listens {
			if withoutPort(l.String()) == a {
				kept[a] = l.String()
			}
		}
	}
	data, err := json.Marshal(kept)
	if err == nil {
		err = atomicfile.Write(file, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep the ports: %w", err)
	}
	return nil
}

func withoutPort(addr string) string { return portInAddr.ReplaceAllString(addr, "/$1/0") }

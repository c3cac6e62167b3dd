package peer

import (
	"encoding/json"
	"fmt"
	"os"

	ma "github.com/multiformats/go-multiaddr"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
)

// Peers remember the address of this one. A port that the system has chosen therefore stays the same across
// restarts if it is free. All peers can then restart and find each other without a supernode.

// recallPorts returns the addresses to listen on. It replaces port 0 by the port in file, if that is free,
// and ignores invalid entries.
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

// keepPorts writes to file the actual address for each address in asked.
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

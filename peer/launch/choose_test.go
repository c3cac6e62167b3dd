package launch

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
)

func TestChoice(t *testing.T) {
	const shm, tcp, stream = proclink.Shm, proclink.TCP, proclink.Stream
	cases := map[string]struct {
		situation situation
		allowed   []proclink.Kind
		kind      proclink.Kind
		why       string
	}{
		"one peer":      {situation{here: true}, proclink.Kinds, shm, "both on one peer"},
		"two peers":     {situation{}, proclink.Kinds, tcp, "on different peers"},
		"no memory":     {situation{here: true, noMemory: "not on this system"}, proclink.Kinds, tcp, "both on one peer; no shm: not on this system"},
		"no way direct": {situation{noDirect: "192.0.2.1:4: i/o timeout"}, proclink.Kinds, stream, "on different peers; no tcp: 192.0.2.1:4: i/o timeout"},
		"tcp forbidden": {situation{}, []proclink.Kind{shm, stream}, stream, "on different peers; tcp is not allowed"},
		"stream only":   {situation{here: true}, []proclink.Kind{stream}, stream, "both on one peer; shm is not allowed; tcp is not allowed"},
		"stream first":  {situation{}, []proclink.Kind{stream, tcp, shm}, stream, "on different peers; stream is preferred to tcp"},
		"tcp first":     {situation{here: true}, []proclink.Kind{tcp, shm}, tcp, "both on one peer; tcp is preferred to shm"},
		"shm only":      {situation{}, []proclink.Kind{shm}, "", "on different peers; tcp is not allowed; stream is not allowed"},
		"nothing works": {situation{noDirect: "refused", noStream: "lost"}, proclink.Kinds, "", "on different peers; no tcp: refused; no stream: lost"},
		"nothing at all": {situation{here: true}, nil, "",
			"both on one peer; shm is not allowed; tcp is not allowed; stream is not allowed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if kind, why := choose(c.situation, c.allowed); kind != c.kind || why != c.why {
				t.Errorf("got %q because %q, want %q because %q", kind, why, c.kind, c.why)
			}
		})
	}
}

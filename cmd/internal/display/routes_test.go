package display

import (
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

func TestRouteMessages(t *testing.T) {
	a := []view.Process{{Rank: 0}, {Rank: 1}}
	b := []view.Process{{Rank: 0, Replica: 1}, {Rank: 1, Replica: 1}}
	self := func(p view.Process) submit.Route {
		return submit.Route{From: []view.Process{p}, To: []view.Process{p}, Kind: "self", Why: "a process to itself"}
	}
	many := make([]view.Process, 10)
	var far []submit.Route // between each pair of 60 peers
	for i := range 60 {
		for k := range 60 {
			r := submit.Route{From: []view.Process{{Rank: i}}, To: []view.Process{{Rank: k}}, Kind: "tcp", Why: "on different peers"}
			if i == k {
				r = self(r.From[0])
			}
			far = append(far, r)
		}
	}
	cases := map[string]struct {
		routes []submit.Route
		want   []string
	}{
		"nothing": {nil, nil},
		"two peers": {
			[]submit.Route{
				self(a[0]), self(a[1]),
				{From: a, To: a, Kind: "shm", Why: "both on one peer"},
				{From: a, To: b, Kind: "tcp", Why: "on different peers"},
				{From: b, To: a, Kind: "tcp", Why: "on different peers"},
			},
			[]string{
				"each process to itself: self, a process to itself",
				"among 0.0 1.0: shm, both on one peer",
				"0.0 1.0 and 0.1 1.1: tcp, on different peers",
			},
		},
		"directions differ": {
			[]submit.Route{
				{From: a, To: b, Kind: "stream", Relay: "12D3", Why: "w"},
				{From: b, To: a, Kind: "stream", Why: "w"},
			},
			[]string{"0.0 1.0 to 0.1 1.1: stream, relayed through 12D3, w", "0.1 1.1 to 0.0 1.0: stream, w"},
		},
		"round-trip time": {
			[]submit.Route{
				{From: a, To: b, Kind: "tcp", Way: "direct", Why: "w"},
				{From: b, To: a, Kind: "tcp", Way: "direct", RTT: 1_234_567, Why: "w"},
			},
			[]string{"0.0 1.0 and 0.1 1.1: tcp, direct, 1.2ms, w"},
		},
		"punched in one direction": {
			[]submit.Route{
				{From: a, To: b, Kind: "stream", Way: "direct", Why: "w"},
				{From: b, To: a, Kind: "stream", Way: "punched", Why: "w"},
			},
			[]string{"0.0 1.0 to 0.1 1.1: stream, direct, w", "0.1 1.1 to 0.0 1.0: stream, punched, w"},
		},
		"no channel": {[]submit.Route{{From: a, To: b, Why: "nothing is allowed"}}, []string{"0.0 1.0 to 0.1 1.1: no channel, nothing is allowed"}},
		"many processes": {
			[]submit.Route{{From: many, To: many, Kind: "shm", Why: "w"}},
			[]string{"among 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 (2 more): shm, w"},
		},
		"many peers": {far, []string{"60 pairs of processes: self, a process to itself", "3540 pairs of processes: tcp, on different peers"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := routes(c.routes); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

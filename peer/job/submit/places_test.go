package submit

import (
	"slices"
	"testing"
	"time"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
)

func TestClusters(t *testing.T) {
	const us, ms = time.Microsecond, time.Millisecond
	// Distances of peer i to the peers before it; -1 is unknown.
	cases := map[string]struct {
		distances [][]time.Duration
		want      []int
	}{
		"nobody":              {nil, []int{}},
		"one":                 {[][]time.Duration{{}}, []int{0}},
		"one room":            {[][]time.Duration{{}, {200 * us}, {900 * us, 300 * us}}, []int{0, 0, 0}},
		"busy room":           {[][]time.Duration{{}, {2 * ms}, {3 * ms, 2 * ms}}, []int{0, 0, 0}},
		"two sites":           {[][]time.Duration{{}, {300 * us}, {20 * ms, 21 * ms}, {20 * ms, 20 * ms, 400 * us}}, []int{0, 0, 2, 2}},
		"sites by turns":      {[][]time.Duration{{}, {20 * ms}, {300 * us, 20 * ms}, {20 * ms, 400 * us, 21 * ms}}, []int{0, 1, 0, 1}},
		"all far apart":       {[][]time.Duration{{}, {20 * ms}, {25 * ms, 30 * ms}}, []int{0, 1, 2}},
		"a chain":             {[][]time.Duration{{}, {3 * ms}, {20 * ms, 9 * ms}}, []int{0, 0, 0}},
		"one far":             {[][]time.Duration{{}, {1 * ms}, {80 * ms, 80 * ms}}, []int{0, 0, 2}},
		"nothing known":       {[][]time.Duration{{}, {-1}, {-1, -1}}, []int{0, 0, 0}},
		"known to one":        {[][]time.Duration{{}, {300 * us}, {-1, 500 * us}}, []int{0, 0, 0}},
		"one does not answer": {[][]time.Duration{{}, {300 * us}, {-1, -1}}, []int{0, 0, 2}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := clusters(len(c.distances), func(a, b int) (time.Duration, bool) {
				d := c.distances[max(a, b)][min(a, b)]
				return d, d >= 0
			})
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestRanksAreTogetherIfAllTheirReplicasAre: ranks 0 and 1 share a machine in both their replicas,
// ranks 1 and 2 only in the first. The peers of the second replicas are at another site.
func TestRanksAreTogetherIfAllTheirReplicasAre(t *testing.T) {
	site := func(name string, own p2ppeer.ID, near, far []p2ppeer.ID) *link {
		l := &link{peer: own, reported: reported{machine: name, distances: make(map[p2ppeer.ID]time.Duration)}}
		for _, p := range near {
			l.reported.distances[p] = 300 * time.Microsecond
		}
		for _, p := range far {
			l.reported.distances[p] = 40 * time.Millisecond
		}
		return l
	}
	a := site("m", "a", []p2ppeer.ID{"b"}, []p2ppeer.ID{"c", "d"})
	b := site("m", "b", []p2ppeer.ID{"a"}, []p2ppeer.ID{"c", "d"}) // another peer on the machine of a
	c := site("n", "c", []p2ppeer.ID{"d"}, []p2ppeer.ID{"a", "b"})
	d := site("", "d", []p2ppeer.ID{"c"}, []p2ppeer.ID{"a", "b"})
	members := &membership{
		j: &run{req: Request{N: 3, R: 2}}, links: []*link{a, b, c, d},
		runsOn: map[view.Process]*link{
			{Rank: 0}: a, {Rank: 1}: b, {Rank: 2}: a,
			{Rank: 0, Replica: 1}: c, {Rank: 1, Replica: 1}: c, {Rank: 2, Replica: 1}: d,
		},
	}
	var machines, near []uint32
	for _, p := range members.places() {
		machines, near = append(machines, p.Machine), append(near, p.Cluster)
	}
	if !slices.Equal(machines, []uint32{0, 0, 1}) || !slices.Equal(near, []uint32{0, 0, 0}) {
		t.Errorf("machines %v, clusters %v", machines, near)
	}
}

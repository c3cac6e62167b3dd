package collective

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/frame"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/localworld"
)

// farMachines and farClusters place 11 ranks on machines of different sizes, and the machines in
// clusters of different sizes: ranks 0-3 | 4-8 | 9 10.
var (
	farMachines = []int{0, 0, 0, 1, 2, 2, 3, 3, 3, 4, 5}
	farClusters = []int{0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2}
)

// A counting is a sender that counts its messages.
type counting struct {
	channel.Sender
	messages *atomic.Int64
}

func (c counting) Send(frames ...frame.Frame) error {
	for _, f := range frames {
		if f.Kind == frame.Data || f.Kind == frame.Announce {
			c.messages.Add(1)
		}
	}
	return c.Sender.Send(frames...)
}

// farMessages returns the number of messages that call sends between clusters.
func farMessages(t *testing.T, forced Algorithm, call func(*Team) error) int64 {
	var messages atomic.Int64
	n := len(farMachines)
	world := localworld.New(context.Background(), localworld.Config{
		Ranks: n, Replicas: 1,
		Wrap: func(from, to view.Process, s channel.Sender) channel.Sender {
			if farClusters[from.Rank] == farClusters[to.Rank] {
				return s
			}
			return counting{s, &messages}
		},
	})
	err := world.Run(func(p view.Process, e *engine.Engine) error {
		team := Team{Engine: e, Context: 256, Rank: p.Rank, Size: n, Forced: new(Forced)}
		team.Levels = NewLevels(n, func(i int) (int, int) { return farMachines[i], farClusters[i] })
		for op := range team.Forced {
			team.Forced[op] = forced
		}
		if err := call(&team); err != nil {
			return err
		}
		err := e.Flush()
		world.Finish(p)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return messages.Load()
}

// TestLevelsCrossBetweenClustersOnce checks that with levels, one message crosses between two
// clusters in each direction of the operation, whatever the number of ranks. With one root and three
// clusters, two messages cross between clusters. If all ranks exchange data, six messages cross, or
// four if the data pass through one rank.
func TestLevelsCrossBetweenClustersOnce(t *testing.T) {
	const each = 24
	n, root := len(farMachines), 5
	sum := Reduction{Size: 1, Combine: func(in, inout []byte) {
		for i, v := range in {
			inout[i] += v
		}
	}}
	mine := func(t *Team) []byte { return bytes.Repeat([]byte{byte(t.Rank)}, each) }
	cases := []struct {
		name string
		far  int64
		call func(t *Team) error
	}{
		{"barrier", 4, func(t *Team) error { return t.Barrier() }},
		{"bcast", 2, func(t *Team) error { return t.Bcast(mine(t), root) }},
		{"gather", 2, func(t *Team) error { return t.Gather(mine(t), make([]byte, n*each), Even(each), root) }},
		{"gatherv", 2, func(t *Team) error { return t.Gatherv(mine(t), make([]byte, n*each), Even(each), root) }},
		{"scatter", 2, func(t *Team) error { return t.Scatter(make([]byte, n*each), Even(each), mine(t), root) }},
		{"scatterv", 2, func(t *Team) error { return t.Scatterv(make([]byte, n*each), Even(each), mine(t), root) }},
		{"reduce to rank 0", 2, func(t *Team) error { return t.Reduce(mine(t), mine(t), sum, 0) }},
		{"allreduce", 4, func(t *Team) error { return t.Allreduce(mine(t), mine(t), sum) }},
		{"allgather", 4, func(t *Team) error { return t.Allgather(make([]byte, n*each), Even(each)) }},
		{"alltoall", 6, func(t *Team) error {
			return t.Alltoall(make([]byte, n*each), Even(each), make([]byte, n*each), Even(each))
		}},
		{"reducescatter", 6, func(t *Team) error { return t.ReduceScatter(make([]byte, n*each), Even(each), mine(t), sum) }},
	}
	for _, c := range cases {
		levels, others := farMessages(t, Levelled, c.call), farMessages(t, Linear, c.call) // or the algorithm that replaces Linear
		if levels != c.far || others <= levels {
			t.Errorf("%s: %d messages between clusters, want %d; without levels %d", c.name, levels, c.far, others)
		}
	}
}

func TestRecordsRoundTrip(t *testing.T) {
	blocks := [][]byte{nil, {1}, make([]byte, passedOn), make([]byte, passedOn+1)}
	var b []byte
	for i, block := range blocks {
		b = appendRecord(b, i, block)
	}
	records, err := readRecords(b, len(blocks)+1)
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range blocks {
		if r := records[i]; r.whole == nil || r.far != (i == 3) || !r.far && !bytes.Equal(r.block, block) {
			t.Errorf("record %d: got %+v", i, r)
		}
	}
	if records[len(blocks)].whole != nil {
		t.Error("a record that was not written was read")
	}
}

// FuzzRecords checks that decoded records encode to the same bytes.
func FuzzRecords(f *testing.F) {
	f.Add(appendRecord(appendRecord(nil, 2, []byte("abc")), 0, nil))
	f.Add(appendRecord(nil, 1, make([]byte, passedOn+1)))
	f.Add([]byte{0, 0, 0, 0, 9, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		records, err := readRecords(b, 4)
		if err != nil {
			return
		}
		total := 0
		for _, r := range records {
			total += len(r.whole)
			if r.whole != nil && len(r.whole) != recordHeader+len(r.block) {
				t.Errorf("a record of %d bytes has a block of %d", len(r.whole), len(r.block))
			}
		}
		if total != len(b) {
			t.Errorf("%d of %d bytes are in records", total, len(b))
		}
	})
}

package replication

import (
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// BenchmarkMessage measures the cost of one message at r = 2, summed over all four processes: two sends,
// two arrivals, and their share of acknowledgements.
func BenchmarkMessage(b *testing.B) {
	v := view.New(2, 2)
	procs := make(map[view.Process]*Protocol)
	for _, p := range v.Processes() {
		procs[p] = New(p, v, Secret{})
	}
	payload := make([]byte, 1024)
	type hop struct {
		from view.Process
		protection.Envelope
	}
	var way []hop
	put := func(from view.Process, out protection.Output) {
		for _, e := range out.Send {
			way = append(way, hop{from, e})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for k := range 2 {
			from := view.Process{Replica: k}
			put(from, procs[from].Send(protection.Message{Dest: 1, Payload: payload}))
		}
		for i := 0; i < len(way); i++ {
			out, err := procs[way[i].To].Receive(way[i].from, way[i].Frame)
			if err != nil {
				b.Fatal(err)
			}
			put(way[i].To, out)
		}
		way = way[:0]
	}
	if kept := procs[view.Process{}].Retained(); kept > 2*ackMessages*len(payload) {
		b.Errorf("the process retains %d bytes", kept)
	}
}

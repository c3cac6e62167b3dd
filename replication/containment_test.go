package replication

import (
	"fmt"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/protection"
	"github.com/p2pmpi/p2pmpi/internal/view"
)

// A deviatingJob is a job of three ranks with three replicas each, in which each rank sends a message to each other
// rank in every round. The messages depend on everything that their sender has received. One replica of rank 0
// deviates: its messages differ from those of the others.
type deviatingJob struct {
	t       *testing.T
	deviant view.Process
	procs   map[view.Process]*Protocol
	seen    map[view.Process]memory
	reports int
}

func newDeviatingJob(t *testing.T, deviant view.Process) *deviatingJob {
	j := &deviatingJob{t: t, deviant: deviant, procs: make(map[view.Process]*Protocol), seen: make(map[view.Process]memory)}
	v := view.New(3, 3)
	for _, p := range v.Processes() {
		j.procs[p] = New(p, v, Secret{byte(p.Rank), byte(p.Replica)})
	}
	return j
}

// carry carries out the output of p, and of all processes that receive frames because of it. Only replicas of rank 0
// report differences.
func (j *deviatingJob) carry(p view.Process, out protection.Output) {
	for _, m := range out.Deliver {
		j.seen[p] = j.seen[p].with(uint64(m.Source), m.Seq, uint64(digestOf(m.Payload)))
	}
	for _, d := range out.Diverged {
		if j.reports++; p.Rank != j.deviant.Rank {
			j.t.Errorf("%v reports a difference, although only %v deviates: %+v", p, j.deviant, d)
		}
	}
	sent := append([]protection.Envelope(nil), out.Send...)
	for _, e := range sent {
		next, err := j.procs[e.To].Receive(p, e.Frame)
		if err != nil {
			j.t.Error(err)
		}
		j.carry(e.To, next)
	}
}

func digestOf(payload []byte) digest { return open().digest(&protection.Message{Payload: payload}) }

// round makes each process send to each other rank, rank by rank, and then tick.
func (j *deviatingJob) round() {
	all := view.New(3, 3).Processes()
	for _, p := range all {
		for dest := range 3 {
			payload := j.seen[p].payload()
			if p == j.deviant {
				payload[0] ^= 1
			}
			if dest != p.Rank {
				j.carry(p, j.procs[p].Send(protection.Message{Dest: dest, Payload: payload}))
			}
		}
	}
	for _, p := range all {
		j.carry(p, j.procs[p].Tick())
	}
}

// TestR1DeviationStaysInItsRank checks that a replica that deviates does not make other replicas differ, whichever
// replica it is. So the first difference that is found is in its rank, and if it is not master, its loss is enough to
// correct the job.
func TestR1DeviationStaysInItsRank(t *testing.T) {
	for k := range 3 {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			deviant := view.Process{Replica: k}
			j := newDeviatingJob(t, deviant)
			for round := range 5 {
				j.round()
				for p, seen := range j.seen {
					if want := j.seen[view.Process{Rank: p.Rank}]; seen != want {
						t.Fatalf("round %d: %v has not received the same as 0 of its rank", round, p)
					}
				}
			}
			if j.reports == 0 {
				t.Error("the deviation was not reported")
			}
		})
	}
}

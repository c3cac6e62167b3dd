package job

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// Planned is a peer that a job would run on now, and what is known of it.
type Planned struct {
	Peer      string             `json:"peer"` // ID
	Processes []view.Process     `json:"processes"`
	RTT       time.Duration      `json:"rtt"`   // to it, in nanoseconds
	Speed     int                `json:"speed"` // of a processor, in Mflop/s, less its load; 0: unknown
	Domain    reservation.Domain `json:"domain"`
}

// plan tells the user where the job would run, and gives its slots back.
func (j *run) plan(ctx context.Context, reserved *reservation.Reservation) Result {
	var planned []Planned
	for _, p := range reserved.Placements {
		c := j.met[p.Peer]
		planned = append(planned, Planned{
			Peer: p.Peer.String(), Processes: slices.Clone(p.Processes), RTT: c.RTT, Speed: c.Speed, Domain: c.Domain,
		})
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	reserved.Release(ctx, j.s.holder)
	text := fmt.Sprintf("the job would start: %d processes on %d peers", j.req.N*j.req.R, len(planned))
	j.emit(Event{Kind: PlannedEvent, Planned: planned, Text: text})
	return Result{Status: StatusOK}
}

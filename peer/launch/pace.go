package launch

import (
	"context"

	"golang.org/x/time/rate"

	"github.com/p2pmpi/p2pmpi/peer/launch/switchboard"
	"github.com/p2pmpi/p2pmpi/peer/owner/limits"
)

// All bytes to other machines go through this peer, so that it can limit the upload: messages over bridges,
// output, output files, and files that this peer serves. It could not reliably slow down a TCP connection
// that a program holds itself.

func limitsUpload(g limits.Grant) bool { return g.Slot.Upload+g.Job.Upload > 0 }

// A pacer makes senders wait, so that all of them together stay below a limit.
type pacer struct{ limiter *rate.Limiter }

// leastBurst is the minimum number of bytes that may be sent at once: as many as are read from a pipe at a
// time.
const leastBurst = switchboard.PacedRead

// newPacer returns a pacer for the given number of bytes per second; 0 means no limit.
func newPacer(perSecond int64) pacer {
	if perSecond == 0 {
		return pacer{}
	}
	return pacer{rate.NewLimiter(rate.Limit(perSecond), int(max(leastBurst, perSecond/20)))}
}

// adjust changes the limit to the given number of bytes per second, if there is a limit.
func (p pacer) adjust(perSecond int64) {
	if p.limiter != nil && perSecond > 0 {
		p.limiter.SetLimit(rate.Limit(perSecond))
	}
}

// wait returns when n bytes may be sent, or ctx ends.
func (p pacer) wait(ctx context.Context, n int) error {
	if p.limiter == nil {
		return nil
	}
	for n > 0 {
		some := min(n, p.limiter.Burst())
		if err := p.limiter.WaitN(ctx, some); err != nil {
			return err
		}
		n -= some
	}
	return nil
}

// jobUpload returns the upload limit of all that the job sends.
func jobUpload(g limits.Grant, processes int) int64 {
	return limits.Min(limits.Limits{Upload: g.Slot.Upload * int64(processes)}, g.Job).Upload
}

package launch

import (
	"context"
	"errors"

	"golang.org/x/time/rate"

	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
	"github.com/p2pmpi/p2pmpi/peer/internal/limits"
)

// Upload is held by having all bytes to other machines go through this peer: messages over
// bridges, as a TCP connection that a program has in its hands cannot be slowed down
// for certain; what it prints; its output files, and files that this peer passes on.

// uploadLimited says why the processes get no TCP connections to other peers; empty: they may.
const uploadLimited = "the owner of one of the peers limits the upload"

func (j *job) limitsUpload() bool { return j.grant.Slot.Upload+j.grant.Job.Upload > 0 }

// A pacer makes senders wait, so that all together send no more than a limit.
type pacer struct{ limiter *rate.Limiter }

// leastBurst is how many bytes may go at once: what is read from a pipe at a time.
const leastBurst = 32 << 10

// newPacer returns one of so many bytes a second; 0 is no limit.
func newPacer(perSecond int64) pacer {
	if perSecond == 0 {
		return pacer{}
	}
	return pacer{rate.NewLimiter(rate.Limit(perSecond), int(max(leastBurst, perSecond/20)))}
}

// adjust changes the limit to so many bytes per second, if there is one.
func (p pacer) adjust(perSecond int64) {
	if p.limiter != nil && perSecond > 0 {
		p.limiter.SetLimit(rate.Limit(perSecond))
	}
}

// wait returns when n bytes may go, or ctx ends.
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

// jobUpload is the limit of all that the job sends.
func jobUpload(g limits.Grant, processes int) int64 {
	return limits.Min(limits.Limits{Upload: g.Slot.Upload * int64(processes)}, g.Job).Upload
}

// pacing makes what goes for the job wait, but for messages of a process, which wait for
// what the process may send, too.
func (j *job) pacing(ctx context.Context, n int) error { return j.upload.wait(ctx, n) }

// pacePrinted makes output wait that is on its way to the submitter.
func (j *job) pacePrinted(m *jobpb.FromPeer) {
	_ = j.upload.wait(j.ctx, len(m.GetOutput().GetData())) // what is left when the job ends is not much
}

// A pacedSource makes the reader of a process's messages wait.
type pacedSource struct {
	source
	ctx     context.Context
	process *process
}

func (s pacedSource) Read(b []byte) (int, error) {
	n, err := s.source.Read(b[:min(len(b), leastBurst)])
	if wait := errors.Join(s.process.upload.wait(s.ctx, n), s.process.job.upload.wait(s.ctx, n)); wait != nil {
		return n, wait
	}
	return n, err // io.EOF as it is
}

// paced returns what a bridge copies from.
func (p *process) paced(ctx context.Context, from source) source {
	if !p.job.limitsUpload() {
		return from // which copies by itself, faster
	}
	return pacedSource{from, ctx, p}
}

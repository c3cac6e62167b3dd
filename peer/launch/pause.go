package launch

import "time"

// suspendedRound is the interval at which suspended processes are stopped again.
const suspendedRound = time.Second

// keepSuspended keeps all processes suspended until the job resumes. It measures what system calls in
// progress still write; once all processes have stopped, nothing is written any more.
func (g *guard) keepSuspended() {
	g.halt()
	defer g.resume()
	settled := false
	for round := 0; g.job.suspended.Load(); round++ {
		begun := time.Now()
		if g.spend(); g.room <= 0 && !settled {
			left, ok := g.measureStopped()
			if !ok {
				return
			}
			g.room = left
		}
		settled = g.round()
		g.measureDue(false)
		if !settled {
			if !g.pauseAfter(round, time.Since(begun), g.room) {
				return
			}
			continue
		}
		select {
		case <-time.After(suspendedRound):
		case <-g.job.ctx.Done():
			return
		}
	}
}

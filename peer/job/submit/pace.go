package submit

import "time"

const (
	// paceWindow is the time over which a rate is measured: long enough for a link that stutters.
	paceWindow = 10 * time.Second
	// tellEvery is the interval between two progress events of a transfer.
	tellEvery = 200 * time.Millisecond
)

// A pace measures the rate of a transfer. It is pure; the zero pace is ready to use.
type pace struct{ samples []sample }

// A sample is the number of bytes at one time.
type sample struct {
	at    time.Time
	count int64
}

// take records that there are count bytes now.
func (p *pace) take(now time.Time, count int64) {
	n := len(p.samples)
	switch {
	case n > 0 && count < p.samples[n-1].count: // the transfer started over
		p.samples = p.samples[:0]
	case n > 1 && now.Sub(p.samples[n-2].at) < tellEvery/2:
		p.samples = p.samples[:n-1]
	}
	p.samples = append(p.samples, sample{now, count})
	for len(p.samples) > 2 && now.Sub(p.samples[1].at) >= paceWindow {
		p.samples = p.samples[1:]
	}
}

// rate returns the recent rate in bytes per second, or 0 if nothing came or the rate is not known
// yet.
func (p *pace) rate() float64 {
	if len(p.samples) < 2 {
		return 0
	}
	first, last := p.samples[0], p.samples[len(p.samples)-1]
	took := last.at.Sub(first.at).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(last.count-first.count) / took
}

// left returns the seconds until there are total bytes, or 0 if that is unknown or the transfer is
// over.
func (p *pace) left(total int64) float64 {
	rate := p.rate()
	if rate == 0 {
		return 0
	}
	return max(0, float64(total-p.samples[len(p.samples)-1].count)/rate)
}

// stalled reports whether nothing has come for at least half of paceWindow.
func (p *pace) stalled() bool {
	n := len(p.samples)
	return n > 1 && p.rate() == 0 && p.samples[n-1].at.Sub(p.samples[0].at) >= paceWindow/2
}

// A transfer reports the progress of a phase in which bytes are transferred.
type transfer struct {
	run   *run
	phase Phase
	pace  pace
	told  time.Time
}

// tell emits a progress event, unless the last one was emitted less than tellEvery ago. The
// goroutine that transfers the bytes may call it.
func (t *transfer) tell(now time.Time, e Event) {
	if whole := e.Count == e.Total; !whole && now.Sub(t.told) < tellEvery {
		return
	}
	t.told = now
	e.Kind, e.Phase = PhaseEvent, t.phase
	t.run.emit(e)
}

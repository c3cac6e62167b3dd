package job

import "time"

const (
	// paceWindow is the time over which a rate is taken: long enough to bear a link that stutters.
	paceWindow = 10 * time.Second
	// tellEvery is how often the user hears how far a transfer is.
	tellEvery = 200 * time.Millisecond
)

// A pace says how fast bytes come. It is pure; the zero pace is ready.
type pace struct{ samples []sample }

// A sample is how many bytes there were when.
type sample struct {
	at    time.Time
	count int64
}

// take takes in that there are count bytes now.
func (p *pace) take(now time.Time, count int64) {
	n := len(p.samples)
	switch {
	case n > 0 && count < p.samples[n-1].count: // it began anew
		p.samples = p.samples[:0]
	case n > 1 && now.Sub(p.samples[n-2].at) < tellEvery/2:
		p.samples = p.samples[:n-1]
	}
	p.samples = append(p.samples, sample{now, count})
	for len(p.samples) > 2 && now.Sub(p.samples[1].at) >= paceWindow {
		p.samples = p.samples[1:]
	}
}

// rate returns the bytes a second of late; 0: none, or not known yet.
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

// left returns how many seconds it takes until there are total bytes; 0: not known, or over.
func (p *pace) left(total int64) float64 {
	rate := p.rate()
	if rate == 0 {
		return 0
	}
	return max(0, float64(total-p.samples[len(p.samples)-1].count)/rate)
}

// stalled reports that nothing has come for long.
func (p *pace) stalled() bool {
	n := len(p.samples)
	return n > 1 && p.rate() == 0 && p.samples[n-1].at.Sub(p.samples[0].at) >= paceWindow/2
}

// A transfer is what the user is shown of bytes on their way in a phase.
type transfer struct {
	run   *run
	phase Phase
	pace  pace
	told  time.Time
}

// tell says how far it is, unless that was said a moment ago. It may be called by the goroutine that
// does the work.
func (t *transfer) tell(now time.Time, e Event) {
	if whole := e.Count == e.Total; !whole && now.Sub(t.told) < tellEvery {
		return
	}
	t.told = now
	e.Kind, e.Phase = PhaseEvent, t.phase
	t.run.emit(e)
}

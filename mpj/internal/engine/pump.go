package engine

import "time"

// pump is the goroutine that polls the rings while no goroutine of the program does. It ends when
// stopped is closed.
func (p *poller) pump(stopped <-chan struct{}) {
	timer := time.NewTimer(restTime)
	defer timer.Stop()
	var polls uint64
	for {
		select {
		case <-p.kick:
		case <-timer.C:
		case <-stopped:
			return
		}
		p.mu.Lock()
		if p.polls == polls && !p.spinning {
			p.watching = true
		}
		polls = p.polls
		p.pumping = p.watching
		p.mu.Unlock()
		p.watchBell()
		timer.Reset(restTime)
	}
}

// watchBell polls the rings, and sleeps at the bell, for as long as the pump should watch.
func (p *poller) watchBell() {
	armed := false
	for {
		p.mu.Lock()
		if !p.watching || p.stopped {
			p.bell.Disarm()
			p.pumping = false
			p.mu.Unlock()
			return
		}
		moved := p.progress()
		p.mu.Unlock()
		switch {
		case moved:
			armed = false
		case !armed:
			p.bell.Arm()
			armed = true // poll again before sleeping
		default:
			p.bell.Sleep()
			armed = false
		}
	}
}

package engine

import "time"

// pump is the goroutine that polls the rings while no goroutine of the program does.
func (e *Engine) pump() {
	defer e.running.Done()
	p := &e.poller
	timer := time.NewTimer(restTime)
	defer timer.Stop()
	var polls uint64
	for {
		select {
		case <-p.kick:
		case <-timer.C:
		case <-e.stopped:
			return
		}
		e.mu.Lock()
		if p.polls == polls && !p.spinning {
			p.watching = true
		}
		polls = p.polls
		p.pumping = p.watching
		e.mu.Unlock()
		e.watchBell()
		timer.Reset(restTime)
	}
}

// watchBell polls the rings, and sleeps at the bell, for as long as the pump should watch.
func (e *Engine) watchBell() {
	armed := false
	for {
		e.mu.Lock()
		if !e.poller.watching || e.err != nil {
			e.poller.bell.Disarm()
			e.poller.pumping = false
			e.mu.Unlock()
			return
		}
		moved := e.progress()
		e.mu.Unlock()
		switch {
		case moved:
			armed = false
		case !armed:
			e.poller.bell.Arm()
			armed = true // poll again before sleeping
		default:
			e.poller.bell.Sleep()
			armed = false
		}
	}
}

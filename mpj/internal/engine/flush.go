package engine

// Flush waits until every message of this process has reached its destination. The program receives
// no more messages from now on. Flush refuses the messages announced to this process, which ends
// their sends. So two processes do not wait for each other to receive messages that neither of them
// receives.
func (e *Engine) Flush() error {
	w := NewWaiter()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer w.Put()
	e.flush = w
	defer func() { e.flush = nil }()
	return e.transport.Flush(w)
}

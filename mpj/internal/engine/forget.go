package engine

// Forget drops the state of a context in which the program sends and receives no more messages. It
// keeps the state of an abandoned context, and of a context with unmatched messages or posted calls.
func (e *Engine) Forget(context uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := e.mailboxes[context]
	if b != nil && !b.Abandoned && b.Quiet() && len(b.probes) == 0 {
		delete(e.mailboxes, context)
		if e.lastBox == b {
			e.lastBox = nil // a message that arrives now would be lost
		}
	}
}

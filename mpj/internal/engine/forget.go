package engine

// Forget drops what the engine keeps of a context in which the program sends and
// receives nothing any more. It keeps what has not been matched, and that one was
// abandoned.
func (e *Engine) Forget(context uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	b := e.mailboxes[context]
	if b != nil && !b.abandoned && len(b.posts) == 0 && len(b.unexpected) == 0 && len(b.probes) == 0 {
		delete(e.mailboxes, context)
	}
}

package engine

// Choose returns the result of choose at the decider, which may depend on timing and is the same at
// all replicas. Choose takes a point of context, so only one goroutine at a time may call it for
// that context. choose must not call the engine.
func (e *Engine) Choose(context uint32, choose func() uint64) (uint64, error) {
	w := NewWaiter()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer w.Put()
	w.ChooseNumber(choose)
	values, err := e.transport.Decide(context, w)
	if err != nil || len(values) != 1 {
		return 0, orMalformed(err)
	}
	return values[0], nil
}

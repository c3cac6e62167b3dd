package engine

import "time"

// SetOpenTimeout changes openTimeout until restore is called.
func SetOpenTimeout(d time.Duration) (restore func()) {
	before := openTimeout
	openTimeout = d
	return func() { openTimeout = before }
}

func (e *Engine) direct() *direct { return e.transport.(*direct) }

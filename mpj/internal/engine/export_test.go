package engine

import "time"

// SetFlowLimit changes flowLimit until restore is called.
func SetFlowLimit(bytes int) (restore func()) {
	before := flowLimit
	flowLimit = bytes
	return func() { flowLimit = before }
}

// SetOpenTimeout changes openTimeout until restore is called.
func SetOpenTimeout(d time.Duration) (restore func()) {
	before := openTimeout
	openTimeout = d
	return func() { openTimeout = before }
}

// SetAnswerTimeout changes answerTimeout until restore is called.
func SetAnswerTimeout(d time.Duration) (restore func()) {
	before := answerTimeout
	answerTimeout = d
	return func() { answerTimeout = before }
}

// SetReplayLimit changes replayLimit until restore is called.
func SetReplayLimit(bytes int) (restore func()) {
	before := replayLimit
	replayLimit = bytes
	return func() { replayLimit = before }
}

// SetWindows changes, for jobs that start before restore is called, the bytes that the fastest
// replica may lack and those that each replica may lack.
func SetWindows(quickest, each int) (restore func()) {
	n, s, l := near, farShare, farLeast
	near, farShare, farLeast = [classes]int{quickest, quickest}, 0, each
	return func() { near, farShare, farLeast = n, s, l }
}

// WaitingSends returns the number of sends of e that are not done.
func (e *Engine) WaitingSends() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.protected().windows.waiting)
}

// Unreceived returns the number of bytes that have arrived and that no receive has matched.
func (e *Engine) Unreceived() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.protected().unreceived()
}

// SentTo returns the number of messages sent to a rank in a context.
func (e *Engine) SentTo(context uint32, dest int) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.protected().protocol.Sent(context, dest)
}

// Retained returns the number of bytes that the protocol keeps.
func (e *Engine) Retained() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.protected().protocol.Retained()
}

func (e *Engine) protected() *protected { return e.transport.(*protected) }

func (e *Engine) direct() *direct { return e.transport.(*direct) }

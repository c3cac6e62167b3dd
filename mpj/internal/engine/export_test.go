package engine

import "time"

// SetFlowLimit changes flowLimit until restore is called.
func SetFlowLimit(bytes int) (restore func()) {
	before := flowLimit
	flowLimit = bytes
	return func() { flowLimit = before }
}

// SetPatience changes patience until restore is called.
func SetPatience(d time.Duration) (restore func()) {
	before := patience
	patience = d
	return func() { patience = before }
}

// SetAnswersWithin changes answersWithin until restore is called.
func SetAnswersWithin(d time.Duration) (restore func()) {
	before := answersWithin
	answersWithin = d
	return func() { answersWithin = before }
}

// SetPastLimit changes pastLimit until restore is called.
func SetPastLimit(bytes int) (restore func()) {
	before := pastLimit
	pastLimit = bytes
	return func() { pastLimit = before }
}

// SetCredits changes the bytes that the fastest replica, and each replica, may lack, for jobs that
// start before restore is called.
func SetCredits(quickest, each int) (restore func()) {
	n, s, l := near, farShare, farLeast
	near, farShare, farLeast = [classes]int{quickest, quickest}, 0, each
	return func() { near, farShare, farLeast = n, s, l }
}

// Held returns the number of sends of e that are not done.
func (e *Engine) Held() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.held)
}

// Unreceived returns the number of bytes that have arrived and that no receive has matched.
func (e *Engine) Unreceived() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unreceived()
}

// SentTo returns the number of messages sent to a rank in a context.
func (e *Engine) SentTo(context uint32, dest int) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.protocol.Sent(context, dest)
}

// Retained returns the number of bytes that the protocol keeps.
func (e *Engine) Retained() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.protocol.Retained()
}

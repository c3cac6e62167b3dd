package protected

import (
	"time"

	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
)

// SetFlowLimit changes flowLimit until restore is called.
func SetFlowLimit(bytes int) (restore func()) {
	before := flowLimit
	flowLimit = bytes
	return func() { flowLimit = before }
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
func WaitingSends(e *engine.Engine) int {
	p := e.Transport().(*transport)
	p.loop.Lock()
	defer p.loop.Unlock()
	return len(p.windows.waiting)
}

// Unreceived returns the number of bytes that have arrived and that no receive has matched.
func Unreceived(e *engine.Engine) int {
	p := e.Transport().(*transport)
	p.loop.Lock()
	defer p.loop.Unlock()
	return p.unreceived()
}

// SentTo returns the number of messages sent to a rank in a context.
func SentTo(e *engine.Engine, context uint32, dest int) uint64 {
	p := e.Transport().(*transport)
	p.loop.Lock()
	defer p.loop.Unlock()
	return p.protocol.Sent(context, dest)
}

// Retained returns the number of bytes that the protocol keeps.
func Retained(e *engine.Engine) int {
	p := e.Transport().(*transport)
	p.loop.Lock()
	defer p.loop.Unlock()
	return p.protocol.Retained()
}

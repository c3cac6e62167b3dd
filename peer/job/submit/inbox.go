package submit

// An inbox passes messages from the control streams to the goroutine that runs the job.
type inbox struct {
	messages chan received
	done     chan struct{} // closed when nothing reads messages any more
}

func newInbox() inbox { return inbox{make(chan received), make(chan struct{})} }

// put waits until a message is taken. It returns false if it never will be.
func (i inbox) put(h received) bool {
	select {
	case i.messages <- h:
		return true
	case <-i.done:
		return false
	}
}

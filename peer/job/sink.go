package job

import "time"

// A Sink takes the events of a job, one after the other. It calls done once for each: when
// the user has got it, or with an error when nobody ever will, upon which the job is
// cancelled. It may do so later, and in another goroutine; output and the result are waited
// for, so for these the calls come in the order of the events and do not overlap.
type Sink func(e Event, done func(error))

// Showing returns the Sink of a user to whom show has shown an event when it returns. The
// result is left out: it is what Run and Attach return.
func Showing(show func(Event) error) Sink {
	return func(e Event, done func(error)) {
		if e.Kind == ResultEvent {
			done(nil)
			return
		}
		done(show(e))
	}
}

// refuse says how a job has ended that has never begun.
func refuse(sink Sink, r Result) Result {
	over := make(chan struct{})
	sink(Event{Kind: ResultEvent, Time: time.Now(), Result: &r}, func(error) { close(over) })
	<-over
	return r
}

// conclude says how the job has ended.
func (j *run) conclude(r Result) Result {
	j.emit(Event{Kind: ResultEvent, Result: &r})
	return r
}

package submit

import (
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// A Sink receives the events of a job, one after the other. It calls done once for each event: when
// the user has got it, or with an error if the user never will, in which case the job is cancelled.
// It may call done later and from another goroutine. The job waits for output and the result, so
// for these the calls of done come in the order of the events and do not overlap.
type Sink func(e Event, done func(error))

// Showing returns a Sink for a function that returns when the user has seen the event. It skips the
// result, which Run and Attach return.
func Showing(show func(Event) error) Sink {
	return func(e Event, done func(error)) {
		if e.Kind == ResultEvent {
			done(nil)
			return
		}
		done(show(e))
	}
}

// refuse reports the result of a job that was never started.
func refuse(sink Sink, r job.Result) job.Result {
	over := make(chan struct{})
	sink(Event{Kind: ResultEvent, Time: time.Now(), Result: &r}, func(error) { close(over) })
	<-over
	return r
}

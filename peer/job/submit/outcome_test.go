package submit

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
)

// An outcome is what the user sees of a job: its events and result.
type outcome struct {
	job.Result
	bed    *bed
	events []Event
}

// run runs a job to its end. watch, if not nil, receives every event.
func (b *bed) run(req Request, watch func(Event) error) *outcome {
	b.Helper()
	return b.runUntil(b.Context(), req, watch)
}

func (b *bed) runUntil(ctx context.Context, req Request, watch func(Event) error) *outcome {
	b.Helper()
	return b.follow(func(emit func(Event) error) job.Result { return b.submitter.Run(ctx, req, Showing(emit)) }, watch)
}

// follow collects the events and the result of run.
func (b *bed) follow(run func(emit func(Event) error) job.Result, watch func(Event) error) *outcome {
	b.Helper()
	o := &outcome{bed: b}
	ended := make(chan struct{})
	var mu sync.Mutex // also held to report a job that does not end
	go func() {       // ends with the job
		defer close(ended)
		o.Result = run(func(e Event) error {
			mu.Lock()
			o.events = append(o.events, e)
			mu.Unlock()
			if watch != nil {
				return watch(e)
			}
			return nil
		})
	}()
	select {
	case <-ended:
	case <-time.After(2 * eventTimeout):
		stacks := make([]byte, 1<<20)
		mu.Lock()
		defer mu.Unlock()
		b.Fatalf("the job does not end; said:\n%s\n%s", o.texts(), stacks[:runtime.Stack(stacks, true)])
	}
	return o
}

// want compares the job's result with the expected one, and checks that no peer has anything left
// of it (S4).
func (o *outcome) want(status int, says string) {
	o.bed.Helper()
	if o.Status != status || !strings.Contains(o.Message, says) {
		o.bed.Errorf("ended with %d %q, want %d and %q; said: %q", o.Status, o.Message, status, says, o.texts())
	}
	o.bed.nothingLeft()
}

// wrote compares the output that the user got from one stream of a rank.
func (o *outcome) wrote(rank int, s job.Stream, want string) {
	o.bed.Helper()
	var got strings.Builder
	for _, e := range o.events {
		if e.Kind == OutputEvent && e.Rank == rank && e.Stream == s {
			got.Write(e.Data)
		}
	}
	if got.String() != want {
		o.bed.Errorf("stream %d of rank %d is %q, want %q", s, rank, got.String(), want)
	}
}

// texts returns the messages that the user got.
func (o *outcome) texts() string {
	var texts []string
	for _, e := range o.events {
		if e.Text != "" {
			texts = append(texts, e.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func (o *outcome) told(says string) {
	o.bed.Helper()
	if got := o.texts(); !strings.Contains(got, says) {
		o.bed.Errorf("the user was told %q, want %q", got, says)
	}
}

// phases returns the phases that the job went through.
func (o *outcome) phases() string {
	var ps []string
	for _, e := range o.events {
		if e.Kind == PhaseEvent && (len(ps) == 0 || ps[len(ps)-1] != string(e.Phase)) {
			ps = append(ps, string(e.Phase))
		}
	}
	return strings.Join(ps, " ")
}

// view returns the last view of the job.
func (o *outcome) view() view.View {
	for i := len(o.events) - 1; i >= 0; i-- {
		if v := o.events[i].View; v != nil {
			return *v
		}
	}
	return view.View{}
}

// changesNameTheirSource expects that the view has changed, and that each event names the peers that requested
// the change.
func (o *outcome) changesNameTheirSource() {
	changes := 0
	for _, e := range o.events {
		if e.View == nil {
			continue
		}
		if changes++; len(e.By) == 0 {
			o.bed.Errorf("no peer is named for %+v", *e.View)
		}
	}
	if changes == 0 {
		o.bed.Error("the view has not changed")
	}
}

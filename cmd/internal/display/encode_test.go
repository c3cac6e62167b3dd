package display

import (
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// TestRankIsWrittenWhereItMeansSomething: rank 0 is that of output and of a rank that is healed, not
// a field of every event.
func TestRankIsWrittenWhereItMeansSomething(t *testing.T) {
	for _, c := range []struct {
		event job.Event
		want  bool
	}{
		{job.Event{Kind: job.OutputEvent}, true},
		{job.Event{Kind: job.HealEvent, Text: "rank 0 lacks a replica"}, true},
		{job.Event{Kind: job.HealEvent, Took: 1, Placed: []job.Placed{{}}}, true},
		{job.Event{Kind: job.HealEvent, Took: 1}, false},
		{job.Event{Kind: job.PhaseEvent}, false},
		{job.Event{Kind: job.ResultEvent, Result: &job.Result{}}, false},
	} {
		line, err := encode(c.event)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(line), `"rank":0`); got != c.want || !strings.Contains(string(line), `"event":"`) {
			t.Errorf("%s: rank %v, want %v", line, got, c.want)
		}
	}
}

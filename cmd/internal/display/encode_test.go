package display

import (
	"bytes"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// TestRankIsWrittenWhereItMeansSomething: the rank is written for output and for a healed rank, even if
// it is 0, and not for every event.
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

// TestResultNamesTheJob: the result contains the job's ID, for scripts.
func TestResultNamesTheJob(t *testing.T) {
	var out bytes.Buffer
	d := New(Config{Stdout: &out, Stderr: &out, JSON: true, Ranks: 1, Replicas: 1})
	if err := d.Event(job.Event{Kind: job.PhaseEvent, Phase: job.Discovering, Job: "0123"}); err != nil {
		t.Fatal(err)
	}
	d.Result(job.Result{Status: 70})
	d.Close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, `"event":"result"`) || !strings.Contains(last, `"job":"0123"`) {
		t.Errorf("got %s", last)
	}
}

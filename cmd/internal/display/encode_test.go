package display

import (
	"bytes"
	"strings"
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// TestRankIsWrittenOnlyWhereMeaningful checks that events of one rank, such as output, contain the rank even if
// it is 0, and that other events do not.
func TestRankIsWrittenOnlyWhereMeaningful(t *testing.T) {
	for _, c := range []struct {
		event submit.Event
		want  bool
	}{
		{submit.Event{Kind: submit.OutputEvent}, true},
		{submit.Event{Kind: submit.HealEvent, Text: "rank 0 lacks a replica"}, true},
		{submit.Event{Kind: submit.HealEvent, Took: 1, Placed: []submit.Placed{{}}}, true},
		{submit.Event{Kind: submit.HealEvent, Took: 1}, false},
		{submit.Event{Kind: submit.PhaseEvent}, false},
		{submit.Event{Kind: submit.ResultEvent, Result: &job.Result{}}, false},
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

// TestResultNamesTheJob checks that the result contains the job's ID, for scripts.
func TestResultNamesTheJob(t *testing.T) {
	var out bytes.Buffer
	d := New(Config{Stdout: &out, Stderr: &out, JSON: true, Ranks: 1, Replicas: 1})
	if err := d.Event(submit.Event{Kind: submit.PhaseEvent, Phase: submit.Discovering, Job: "0123"}); err != nil {
		t.Fatal(err)
	}
	d.Result(job.Result{Status: 70})
	d.Close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, `"event":"result"`) || !strings.Contains(last, `"job":"0123"`) {
		t.Errorf("the last event is %s, want the result of job 0123", last)
	}
}

package control

import (
	"bufio"
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

func TestLinesRoundTrip(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := []line{
		{Number: 1, Event: submit.Event{Kind: submit.PhaseEvent, Time: at, Phase: submit.Running}},
		{Number: 2, Record: 7, Records: 2, Size: 5, Event: submit.Event{
			Kind: submit.OutputEvent, Time: at, Stream: job.Stdout, Data: []byte("a\n\x00{\n"), Record: 7, Records: 2,
		}},
		{Number: 3, Event: submit.Event{Kind: submit.OutputEvent, Time: at, Rank: 3, Stream: job.Stderr}},
		{Number: 4, Event: submit.Event{Kind: submit.WarningEvent, Time: at, Text: strings.Repeat("long ", readAhead)}},
		{Number: 5, Event: submit.Event{Kind: submit.ResultEvent, Time: at, Result: &job.Result{Status: 3}}},
	}
	var stream bytes.Buffer
	for _, l := range want {
		if err := l.write(&stream); err != nil {
			t.Fatal(err)
		}
	}
	whole := stream.Bytes()
	in := bufio.NewReader(bytes.NewReader(whole))
	for i, w := range want {
		if got, err := readLine(in); err != nil || !reflect.DeepEqual(got, w) {
			t.Errorf("line %d: got %+v, %v", i, got, err)
		}
	}
	for n := range 600 { // wherever the stream ends, all complete lines are returned
		in := bufio.NewReader(bytes.NewReader(whole[:n]))
		err := error(nil)
		for got := 0; err == nil; got++ {
			var l line
			if l, err = readLine(in); err == nil && !reflect.DeepEqual(l, want[got]) {
				t.Fatalf("after %d bytes: %+v", n, l)
			}
		}
		if !errors.Is(err, errBroken) {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
}

func TestLinesAreBounded(t *testing.T) {
	for name, stream := range map[string]string{
		"text": strings.Repeat("x", maxEvent+readAhead), "data": `{"event":"output","size":999999999}` + "\n", "negative size": `{"size":-1}` + "\n",
	} {
		if l, err := readLine(bufio.NewReader(strings.NewReader(stream))); err == nil || errors.Is(err, errBroken) {
			t.Errorf("%s: got %d bytes, %v", name, len(l.Data), err)
		}
	}
}

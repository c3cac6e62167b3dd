package submit

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

func TestPrinterKeepsTheLatestProgressOfAPhase(t *testing.T) {
	taken, goOn := make(chan struct{}), make(chan struct{})
	var got []int64
	p := newPrinter("job", Showing(func(e Event) error {
		if got = append(got, e.Count); len(got) == 1 {
			close(taken)
			<-goOn
		}
		return nil
	}), nil, nil, false)
	phase := func(phase Phase, count int64) {
		p.print(item{event: Event{Kind: PhaseEvent, Phase: phase, Count: count}})
	}
	phase(Staging, 1)
	<-taken
	for i := range int64(1000) {
		phase(Staging, 2+i)
	}
	phase(Starting, 0)
	phase(Staging, 5)
	close(goOn)
	p.close()
	if len(got) != 4 || got[0] != 1 || got[1] != 1001 || got[3] != 5 {
		t.Errorf("counts %d", got)
	}
}

// record returns a line of output of a rank.
func record(rank int, number uint64) item {
	e := outputEvent(rank, job.Stdout, []byte("line\n"))
	e.Record = number
	return item{event: e}
}

func TestPrinterAcknowledgesShownOutputOnly(t *testing.T) {
	var failure error
	p := newPrinter("job", Showing(func(e Event) error {
		if e.Rank == 2 {
			return errors.New("broken pipe")
		}
		return nil
	}), func(err error) { failure = err }, nil, false)
	ended := proc(0, 0)
	p.print(record(0, 1))
	p.print(item{drained: &ended})
	p.print(item{event: Event{Kind: WarningEvent}})
	p.print(record(2, 1))
	p.print(record(3, 1))
	p.close()
	shown := p.receipts()
	if len(shown) != 2 || shown[0].event.Rank != 0 || shown[1].drained != &ended {
		t.Errorf("receipts %+v", shown)
	}
	if failure == nil {
		t.Error("the failure was not told")
	}
}

// TestR6PrinterReturnsUnseenOutput: output that the sink has taken and the user has yet to see is
// available for the record of the finished job. A resident peer does not wait until the user has
// seen it.
func TestR6PrinterReturnsUnseenOutput(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		var waiting []func(error)
		taken := make(chan struct{}, 4)
		p := newPrinter("job", func(e Event, done func(error)) {
			waiting = append(waiting, done)
			taken <- struct{}{}
		}, nil, nil, ahead)
		ended := proc(0, 0)
		p.print(record(0, 1))
		p.print(record(0, 2))
		p.print(item{drained: &ended})
		p.print(item{event: outputEvent(1, job.Stderr, []byte("tail"))})
		for range 3 {
			<-taken
		}
		waiting[0](nil)
		rest := p.unseenOutput()
		if len(rest) != 2 || rest[0].Record != 2 || rest[1].Record != 0 || rest[1].Rank != 1 {
			t.Errorf("rest %+v", rest)
		}
		drained := slices.ContainsFunc(p.receipts(), func(i item) bool { return i.drained != nil })
		if drained != ahead {
			t.Errorf("ahead %t: the end of output is reached: %t", ahead, drained)
		}
		waiting[1](nil)
		waiting[2](nil)
		p.close()
		if shown := p.receipts(); (shown[len(shown)-1].drained == nil) != ahead || len(p.unseenOutput()) > 0 {
			t.Errorf("ahead %t: receipts %+v", ahead, shown)
		}
	}
}

// TestPrinterReportsAFailedRecordOnce: the user gets the output in spite of the failed record.
func TestPrinterReportsAFailedRecordOnce(t *testing.T) {
	full, err := os.Open(os.DevNull) // opened for reading: writes fail
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	output, warnings := 0, 0
	p := newPrinter("job", Showing(func(e Event) error {
		switch e.Kind {
		case OutputEvent:
			output++
		case WarningEvent:
			warnings++
		}
		return nil
	}), nil, &keeper{shown: full, out: newTranscripts(1)}, false)
	for i := range uint64(2) {
		p.print(record(0, i+1))
		<-p.news
	}
	p.close()
	if output != 2 || warnings != 1 {
		t.Errorf("%d records and %d warnings, want 2 and 1", output, warnings)
	}
}

func TestOutgoingKeepsTheLatestMessageOfAKind(t *testing.T) {
	o := newOutgoing()
	begin := &jobpb.ToPeer{Body: &jobpb.ToPeer_Begin{Begin: &jobpb.Begin{}}}
	for i := range uint64(10000) {
		o.put(&jobpb.ToPeer{Body: &jobpb.ToPeer_Emitted{Emitted: &jobpb.Emitted{Rank: uint32(i % 2), Stdout: i}}})
		o.put(&jobpb.ToPeer{Body: &jobpb.ToPeer_View{View: &jobpb.View{Epoch: i}}})
		if i == 0 {
			o.put(begin)
		}
	}
	queue := o.take()
	if len(queue) != 4 {
		t.Fatalf("%d messages wait, want 4", len(queue))
	}
	if queue[0].GetEmitted().GetStdout() != 9998 || queue[1].GetView().GetEpoch() != 9999 || queue[2] != begin || queue[3].GetEmitted().GetStdout() != 9999 {
		t.Errorf("waiting: %v", queue)
	}
	o.put(begin)
	if queue := o.take(); len(queue) != 1 {
		t.Errorf("waiting after all was taken: %v", queue)
	}
}

// lines returns output of rank 0: the records with numbers first to last.
func lines(first, last uint64) item {
	i := item{event: outputEvent(0, job.Stdout, nil), weight: 1}
	for n := first; n <= last; n++ {
		i.event.Data = fmt.Appendf(i.event.Data, "%d\n", n)
	}
	i.event.Record, i.event.Records = last, last-first+1
	return i
}

// TestR6BatchesShownTogether: if a p2prun is killed, a resumed job repeats records that were shown
// and not recorded, so a p2prun that keeps its job shows records one by one. A resident peer passes
// on everything that waits: its listener may get unacknowledged output twice in any case.
func TestR6BatchesShownTogether(t *testing.T) {
	for handed, want := range map[bool]int{false: 1200, true: 2} {
		s, k := keeping(t)
		s.cfg.Resident = handed
		var shown []uint64
		text := ""
		begun, goOn := make(chan struct{}), make(chan struct{})
		p := newPrinter("job", Showing(func(e Event) error {
			if text == "" {
				close(begun)
				<-goOn // the following output waits
			}
			text += string(e.Data)
			shown = append(shown, e.Record)
			return nil
		}), nil, k, handed)
		p.print(lines(1, 1000))
		<-begun
		for n := uint64(1001); n <= 1200; n++ {
			p.print(lines(n, n))
		}
		close(goOn)
		p.close()
		if text != string(lines(1, 1200).event.Data) {
			t.Errorf("handed %v: the user has %.40q", handed, text)
		}
		if len(shown) != want {
			t.Errorf("handed %v: shown by %d events, want %d", handed, len(shown), want)
		}
		if at, _, err := k.positions(); err != nil || at[0][0] != 1200 {
			t.Errorf("handed %v: noted %v, %v", handed, at, err)
		}
		weight := 0
		for _, r := range p.receipts() {
			weight += r.weight
		}
		if weight != 201 {
			t.Errorf("handed %v: receipts for %d of 201 messages", handed, weight)
		}
		k.close()
	}
}

// TestSingleLineIsShownWithoutDelay: only waiting output is merged, and a line does not wait for
// more.
func TestSingleLineIsShownWithoutDelay(t *testing.T) {
	shown := make(chan string)
	p := newPrinter("job", Showing(func(e Event) error { shown <- string(e.Data); return nil }), nil, nil, false)
	for n := uint64(1); n <= 3; n++ {
		p.print(lines(n, n))
		if got := <-shown; got != fmt.Sprintf("%d\n", n) {
			t.Errorf("got %q for line %d", got, n)
		}
	}
	p.close()
}

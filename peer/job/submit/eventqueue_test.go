package submit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/job"
)

// reading returns an EventQueue whose listener passes each event to take.
func reading(take func(*EventQueue, Numbered)) *EventQueue {
	q := NewEventQueue("")
	go func() { // ends with the job
		number := uint64(0)
		for range q.Wake() {
			for _, n := range q.After(number) {
				take(q, n)
				number = n.Number
			}
			if q.over() {
				return
			}
		}
	}()
	return q
}

func TestTheLatestProgressOfAPhaseIsShown(t *testing.T) {
	taken, goOn := make(chan struct{}), make(chan struct{})
	var got []int64
	q := Showing(func(e Event) error {
		if got = append(got, e.Count); len(got) == 1 {
			close(taken)
			<-goOn
		}
		return nil
	})
	phase := func(phase Phase, count int64) { q.Put(Event{Kind: PhaseEvent, Phase: phase, Count: count}) }
	phase(Staging, 1)
	<-taken
	for i := range int64(1000) {
		phase(Staging, 2+i)
	}
	phase(Starting, 0)
	phase(Staging, 5)
	close(goOn)
	q.finish()
	if len(got) != 4 || got[0] != 1 || got[1] != 1001 || got[3] != 5 {
		t.Errorf("counts %d", got)
	}
}

// record returns a line of output of a rank.
func record(rank int, number uint64) Event {
	e := outputEvent(rank, job.Stdout, []byte("line\n"))
	e.Record = number
	return e
}

func TestOnlyShownOutputIsAcknowledged(t *testing.T) {
	var failure error
	q := Showing(func(e Event) error {
		if e.Rank >= 2 {
			return errors.New("broken pipe")
		}
		return nil
	})
	q.begin(nil, func(err error) { failure = errors.Join(failure, err) })
	q.Put(record(0, 1))
	q.Put(Event{Kind: WarningEvent})
	q.Put(record(2, 1))
	q.Put(record(3, 1))
	q.finish()
	if shown := q.takeShown(); len(shown) != 1 || shown[job.Source{Rank: 0, Stream: job.Stdout}] != 1 {
		t.Errorf("shown %v", shown)
	}
	if failure == nil || failure.Error() != "no listener: broken pipe" {
		t.Errorf("the job was told %v, want one failure", failure)
	}
}

// TestR6UnshownOutputIsReturned: output that a listener has taken, and that the user has not seen, is
// available for the record of the finished job.
func TestR6UnshownOutputIsReturned(t *testing.T) {
	q := NewEventQueue("")
	q.Put(lines(1, 3))
	q.Put(Event{Kind: WarningEvent})
	q.Put(outputEvent(1, job.Stderr, []byte("tail")))
	if taken := q.After(0); len(taken) != 3 {
		t.Fatalf("took %+v", taken)
	}
	q.Acknowledge(1)
	if unread := q.unreadOf(lines(1, 3).source()); unread != len("2\n3\n")+outputOverhead {
		t.Errorf("%d bytes are unread", unread)
	}
	rest := q.unshown()
	if len(rest) != 2 || rest[0].Record != 3 || rest[0].Records != 2 || string(rest[0].Data) != "2\n3\n" || rest[1].Record != 0 || rest[1].Rank != 1 {
		t.Errorf("rest %+v", rest)
	}
	q.Acknowledge(5)
	q.finish()
	if rest := q.unshown(); len(rest) > 0 {
		t.Errorf("rest %+v after all was acknowledged", rest)
	}
}

// TestAFailedRecordIsReportedOnce: the user gets the output in spite of the failed record.
func TestAFailedRecordIsReportedOnce(t *testing.T) {
	full, err := os.Open(os.DevNull) // opened for reading: writes fail
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	output, warnings := 0, 0
	q := Showing(func(e Event) error {
		switch e.Kind {
		case OutputEvent:
			output++
		case WarningEvent:
			warnings++
		}
		return nil
	})
	q.begin(&keeper{shown: full, out: newTranscripts(1)}, nil)
	for i := range uint64(2) {
		q.Put(record(0, i+1))
		<-q.news
	}
	q.finish()
	if output != 2 || warnings != 1 {
		t.Errorf("%d records and %d warnings, want 2 and 1", output, warnings)
	}
}

// lines returns output of rank 0: the records with numbers first to last.
func lines(first, last uint64) Event {
	e := outputEvent(0, job.Stdout, nil)
	for n := first; n <= last; n++ {
		e.Data = fmt.Appendf(e.Data, "%d\n", n)
	}
	e.Record, e.Records = last, last-first+1
	return e
}

// TestR6KeptRecordsAreShownOneByOne: if a p2prun is killed, a resumed job repeats records that were
// shown and not recorded, so a p2prun that keeps its job shows single records.
func TestR6KeptRecordsAreShownOneByOne(t *testing.T) {
	_, k := keeping(t)
	events, text := 0, ""
	begun, goOn := make(chan struct{}), make(chan struct{})
	q := Showing(func(e Event) error {
		if text == "" {
			close(begun)
			<-goOn // the following output waits
		}
		text += string(e.Data)
		if at, _, err := k.positions(); err != nil || at[0][0] != uint64(events) {
			t.Errorf("noted %v, %v, when %d records were shown", at, err, events)
		}
		events++
		return nil
	})
	q.begin(k, nil)
	q.Put(lines(1, 1000))
	<-begun
	for n := uint64(1001); n <= 1200; n++ {
		q.Put(lines(n, n))
	}
	close(goOn)
	q.finish()
	if text != string(lines(1, 1200).Data) || events != 1200 {
		t.Errorf("the user has %.40q by %d events, want 1200", text, events)
	}
	checkNoted(t, q, k)
}

// checkNoted checks that the job knows of 1200 records that the user has, and that they are recorded.
func checkNoted(t *testing.T, q *EventQueue, k *keeper) {
	t.Helper()
	if at, _, err := k.positions(); err != nil || at[0][0] != 1200 {
		t.Errorf("noted %v, %v", at, err)
	}
	if shown := q.takeShown(); shown[job.Source{Rank: 0, Stream: job.Stdout}] != 1200 {
		t.Errorf("shown %v", shown)
	}
	k.close()
}

// TestR6WaitingRecordsAreShownTogether: a listener of a resident peer gets everything that waits. It
// may get unacknowledged output twice in any case.
func TestR6WaitingRecordsAreShownTogether(t *testing.T) {
	_, k := keeping(t)
	q := NewEventQueue("")
	q.begin(k, nil)
	q.Put(lines(1, 1000))
	first := q.After(0)
	for n := uint64(1001); n <= 1200; n++ {
		q.Put(lines(n, n))
	}
	second := q.After(first[0].Number)
	if len(first) != 1 || len(second) != 1 || string(first[0].Data)+string(second[0].Data) != string(lines(1, 1200).Data) {
		t.Fatalf("took %+v and then %+v", first, second)
	}
	if again := q.After(0); len(again) != 1 || string(again[0].Data) != string(lines(1, 1200).Data) {
		t.Errorf("the next listener gets %+v", again)
	}
	q.Acknowledge(second[0].Number)
	q.finish()
	checkNoted(t, q, k)
}

// TestSingleLineIsShownWithoutDelay: only waiting output is merged, and a line does not wait for
// more.
func TestSingleLineIsShownWithoutDelay(t *testing.T) {
	shown := make(chan string)
	q := Showing(func(e Event) error { shown <- string(e.Data); return nil })
	for n := uint64(1); n <= 3; n++ {
		q.Put(lines(n, n))
		if got := <-shown; got != fmt.Sprintf("%d\n", n) {
			t.Errorf("got %q for line %d", got, n)
		}
	}
	q.finish()
}

// listeners simulates a job and successive listeners with a random order of events.
type listeners struct {
	t   *testing.T
	rnd *rand.Rand
	*EventQueue

	wrote   uint64 // number of records that the job has written
	settled uint64 // number of these that the job knows to be shown
	got     uint64 // number of records that listeners have shown, without gaps
	acked   uint64 // number of these that were acknowledged

	told  uint64     // last number sent to the present listener
	taken []Numbered // what it has shown and not acknowledged
}

func (c *listeners) write() {
	first := c.wrote + 1
	c.wrote += 1 + c.rnd.Uint64N(3)
	c.Put(lines(first, c.wrote))
}

func (c *listeners) report() {
	events := []Event{{Kind: PhaseEvent, Phase: Running}, {Kind: WarningEvent, Text: "careful"}, {Kind: PlacedEvent}}
	c.Put(events[c.rnd.IntN(len(events))])
}

func (c *listeners) listen() {
	for _, n := range c.After(c.told) {
		if n.Number <= c.told {
			c.t.Fatalf("event %d after %d", n.Number, c.told)
		}
		c.told = n.Number
		c.taken = append(c.taken, n)
		if n.Record == 0 {
			continue
		}
		first := n.Record - n.Records + 1
		if first > c.got+1 || first <= c.acked || string(n.Data) != string(lines(first, n.Record).Data) {
			c.t.Fatalf("records %d to %d, %q, when %d were shown and %d acknowledged", first, n.Record, n.Data, c.got, c.acked)
		}
		c.got = max(c.got, n.Record)
	}
}

func (c *listeners) acknowledgeSome() {
	if len(c.taken) == 0 {
		return
	}
	n := 1 + c.rnd.IntN(len(c.taken))
	for _, l := range c.taken[:n] {
		c.acked = max(c.acked, l.Record)
	}
	number := c.taken[n-1].Number
	c.taken = c.taken[n:]
	c.Acknowledge(number)
	for from, record := range c.takeShown() {
		if from != (job.Source{Rank: 0, Stream: job.Stdout}) || record <= c.settled || record != c.acked {
			c.t.Fatalf("the job learns of record %d of %v, after %d; %d are acknowledged", record, from, c.settled, c.acked)
		}
		c.settled = record
	}
}

// leave replaces the listener by a new one without any state.
func (c *listeners) leave() {
	c.told, c.taken = 0, nil
	phases := 0
	for _, n := range c.State() {
		if n.Number != 0 || n.Kind == WarningEvent {
			c.t.Fatalf("state %+v", n)
		}
		if n.Kind == PhaseEvent {
			phases++
		}
	}
	if phases > 1 {
		c.t.Fatalf("%d phases at once", phases)
	}
}

// TestR6ListenersGetEveryRecordInOrder checks that listeners show each record in order. A record is
// repeated only if it was not acknowledged, and the job learns of each acknowledgement once, in order.
func TestR6ListenersGetEveryRecordInOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range uint64(200) {
		c := &listeners{t: t, rnd: rand.New(rand.NewPCG(seed, i)), EventQueue: NewEventQueue("")}
		for range 400 {
			switch c.rnd.IntN(10) {
			case 0, 1, 2, 3:
				c.write()
			case 4, 5:
				c.report()
			case 6, 7:
				c.listen()
			case 8:
				c.acknowledgeSome()
			case 9:
				if c.rnd.IntN(4) == 0 {
					c.leave()
				}
			}
		}
		for c.listen(); len(c.taken) > 0; c.listen() {
			c.acknowledgeSome()
		}
		if c.got != c.wrote || c.settled != c.wrote || len(c.waiting) > 0 || c.droppable != 0 || c.unreadOf(lines(1, 1).source()) != 0 {
			t.Fatalf("schedule %d: %d records, %d shown, the job knows of %d; %d events wait", i, c.wrote, c.got, c.settled, len(c.waiting))
		}
	}
}

// TestLossyQueueIsBounded checks that the oldest droppable events are dropped, and that output is kept.
func TestLossyQueueIsBounded(t *testing.T) {
	q := NewEventQueue("")
	q.Put(Event{Kind: KeptEvent})
	for i := range 10 * maxDroppable {
		q.Put(Event{Kind: WarningEvent, Count: int64(i)})
		q.Put(Event{Kind: PhaseEvent, Phase: Staging, Count: int64(i)})
		q.Put(record(0, uint64(i+1)))
	}
	count := make(map[Kind]int)
	for _, n := range q.waiting {
		count[n.Kind]++
		if n.Kind == PhaseEvent && n.Count != 10*maxDroppable-1 || n.Kind == WarningEvent && n.Count < 9*maxDroppable {
			t.Errorf("%s %d waits", n.Kind, n.Count)
		}
	}
	if count[OutputEvent] != 10*maxDroppable || count[PhaseEvent] != 1 || count[WarningEvent] != maxDroppable-2 || count[KeptEvent] != 1 {
		t.Errorf("waiting: %v", count)
	}
}

// TestClosedQueueHoldsNothing checks that Close drops all events, the later ones too, and cancels the job
// once.
func TestClosedQueueHoldsNothing(t *testing.T) {
	q, gone := NewEventQueue(""), errors.New("gone")
	var heard []error
	q.begin(nil, func(err error) { heard = append(heard, err) })
	q.Put(record(0, 1))
	q.Put(record(0, 2))
	q.Close(gone)
	q.Close(errors.New("again"))
	q.Put(record(0, 3))
	q.Acknowledge(3)
	q.finish()
	if len(heard) != 1 || !errors.Is(heard[0], gone) || len(q.After(0)) > 0 || len(q.takeShown()) > 0 {
		t.Errorf("the job was told %v; waiting %v", heard, q.After(0))
	}
}

// TestUnacknowledgedResultIsRepeated checks that a listener receives a result that the previous listener
// has not acknowledged, even if the job has ended since.
func TestUnacknowledgedResultIsRepeated(t *testing.T) {
	q := NewEventQueue("")
	q.Put(record(0, 1))
	q.Put(Event{Kind: ResultEvent, Result: &job.Result{Message: "as it was"}})
	first := q.After(0)
	q.Acknowledge(first[1].Number)
	q.finish()
	q.Close(errors.New("over"))
	second := q.After(0)
	if len(second) != 1 || second[0].Result == nil || second[0].Number != first[1].Number || len(q.After(second[0].Number)) > 0 {
		t.Fatalf("told %+v", second)
	}
	q.Acknowledge(second[0].Number)
}

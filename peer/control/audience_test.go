package control

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
)

// crowd simulates a job and successive listeners with a random order of events.
type crowd struct {
	t   *testing.T
	rnd *rand.Rand
	*audience

	wrote   int      // number of records that the job has written
	settled []uint64 // records that were settled with the job
	got     uint64   // number of records that listeners have shown, without gaps
	acked   uint64   // number of these that were acknowledged

	told  uint64 // last line number sent to the present listener
	shown []line // lines that it has shown and not acknowledged
}

func (c *crowd) write() {
	c.wrote++
	record := uint64(c.wrote)
	c.emit(submit.Event{Kind: submit.OutputEvent, Record: record, Data: fmt.Append(nil, record)}, func(err error) {
		if err != nil {
			c.t.Fatalf("record %d: %v", record, err)
		}
		c.settled = append(c.settled, record)
	})
}

func (c *crowd) report() {
	events := []submit.Event{
		{Kind: submit.PhaseEvent, Phase: submit.Running}, {Kind: submit.WarningEvent, Text: "careful"}, {Kind: submit.PlacedEvent},
	}
	done := 0
	c.emit(events[c.rnd.IntN(len(events))], func(err error) {
		if done++; err != nil {
			c.t.Fatal(err)
		}
	})
	if done != 1 {
		c.t.Fatalf("done was called %d times for an event that needs no acknowledgement", done)
	}
}

func (c *crowd) listen() {
	for _, l := range c.after(c.told) {
		if l.Number <= c.told {
			c.t.Fatalf("line %d after %d", l.Number, c.told)
		}
		c.told = l.Number
		c.shown = append(c.shown, l)
		if l.Record == 0 {
			continue
		}
		if l.Record > c.got+1 || l.Record <= c.acked {
			c.t.Fatalf("record %d, when %d were shown and %d acknowledged", l.Record, c.got, c.acked)
		}
		c.got = max(c.got, l.Record)
	}
}

func (c *crowd) acknowledgeSome() {
	if len(c.shown) == 0 {
		return
	}
	n := 1 + c.rnd.IntN(len(c.shown))
	for _, l := range c.shown[:n] {
		c.acked = max(c.acked, l.Record)
	}
	number := c.shown[n-1].Number
	c.shown = c.shown[n:]
	c.acknowledge(number)
}

// leave replaces the listener by a new one without any state.
func (c *crowd) leave() {
	c.told, c.shown = 0, nil
	phases := 0
	for _, l := range c.stateEvents() {
		if l.Number != 0 || l.done != nil || l.Kind == submit.WarningEvent {
			c.t.Fatalf("preface %+v", l)
		}
		if l.Kind == submit.PhaseEvent {
			phases++
		}
	}
	if phases > 1 {
		c.t.Fatalf("%d phases at once", phases)
	}
}

// TestR6AudienceDeliversEveryRecordInOrder checks that listeners show each record in order. A record is
// repeated only if it was not acknowledged, and is settled with the job once, in order.
func TestR6AudienceDeliversEveryRecordInOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for i := range uint64(200) {
		c := &crowd{t: t, rnd: rand.New(rand.NewPCG(seed, i)), audience: newAudience()}
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
		for c.listen(); len(c.shown) > 0; c.listen() {
			c.acknowledgeSome()
		}
		if c.got != uint64(c.wrote) || len(c.settled) != c.wrote || !slices.IsSorted(c.settled) || len(c.waiting) > 0 || c.droppable != 0 {
			t.Fatalf("schedule %d: %d records, %d shown, %d settled with the job; %d lines wait", i, c.wrote, c.got, len(c.settled), len(c.waiting))
		}
	}
}

// TestAudienceIsBounded checks that the oldest droppable events are dropped, and that output is kept.
func TestAudienceIsBounded(t *testing.T) {
	a := newAudience()
	nothing := func(error) {}
	a.emit(submit.Event{Kind: submit.KeptEvent}, nothing)
	for i := range 10 * maxDroppable {
		a.emit(submit.Event{Kind: submit.WarningEvent, Count: int64(i)}, nothing)
		a.emit(submit.Event{Kind: submit.PhaseEvent, Phase: submit.Staging, Count: int64(i)}, nothing)
		a.emit(submit.Event{Kind: submit.OutputEvent, Record: uint64(i + 1)}, nothing)
	}
	count := make(map[submit.Kind]int)
	for _, l := range a.waiting {
		count[l.Kind]++
		if l.Kind == submit.PhaseEvent && l.Count != 10*maxDroppable-1 || l.Kind == submit.WarningEvent && l.Count < 9*maxDroppable {
			t.Errorf("%s %d waits", l.Kind, l.Count)
		}
	}
	if count[submit.OutputEvent] != 10*maxDroppable || count[submit.PhaseEvent] != 1 || count[submit.WarningEvent] != maxDroppable-2 || count[submit.KeptEvent] != 1 {
		t.Errorf("waiting: %v", count)
	}
}

// TestCloseSettlesAllWaitingEvents checks that close settles all waiting events in order, and that later
// events are settled too.
func TestCloseSettlesAllWaitingEvents(t *testing.T) {
	a, gone := newAudience(), errors.New("gone")
	var heard []int
	tell := func(i int) {
		a.emit(submit.Event{Kind: submit.OutputEvent}, func(err error) {
			if heard = append(heard, i); !errors.Is(err, gone) {
				t.Errorf("event %d: %v", i, err)
			}
		})
	}
	tell(0)
	tell(1)
	a.close(gone)
	a.close(errors.New("again"))
	tell(2)
	a.acknowledge(3)
	if want := []int{0, 1, 2}; !slices.Equal(heard, want) || len(a.after(0)) > 0 {
		t.Errorf("settled %d events, want %d; waiting %v", heard, want, a.after(0))
	}
}

// TestAudienceRepeatsAnUnacknowledgedResult checks that a listener receives a result that the previous listener
// has not acknowledged, even if the job has ended since.
func TestAudienceRepeatsAnUnacknowledgedResult(t *testing.T) {
	a, done := newAudience(), 0
	settled := func(error) { done++ }
	a.emit(submit.Event{Kind: submit.OutputEvent, Record: 1}, settled)
	a.emit(submit.Event{Kind: submit.ResultEvent, Result: &job.Result{Message: "as it was"}}, settled)
	first := a.after(0)
	a.acknowledge(first[1].Number)
	a.close(errOver)
	second := a.after(0)
	if len(second) != 1 || second[0].Result == nil || second[0].Number != first[1].Number || len(a.after(second[0].Number)) > 0 {
		t.Fatalf("told %+v", second)
	}
	a.acknowledge(second[0].Number)
	if done != 2 {
		t.Errorf("done was called %d times, want 2", done)
	}
}

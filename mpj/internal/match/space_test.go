package match

import (
	"fmt"
	"testing"
)

// TestUnexpectedMessagesKeepOrderInBoundedSpace checks that messages that arrive and are received in
// order stay in order, and need no new memory once the Box has room for them, whatever number of
// messages waits.
func TestUnexpectedMessagesKeepOrderInBoundedSpace(t *testing.T) {
	for _, waiting := range []int{0, 1, 2, 7, 100} {
		t.Run(fmt.Sprint(waiting), func(t *testing.T) {
			var (
				b         Box
				came, got uint64
				wildcard  = &Recv{Source: AnySource, Tag: AnyTag}
			)
			arrive := func() { came++; b.Keep(Message{Seq: came}) }
			for range waiting {
				arrive()
			}
			allocated := testing.AllocsPerRun(1000, func() {
				arrive()
				if m, result := b.Post(wildcard, true); result == Matched {
					got++
					if m.Seq != got {
						t.Fatalf("message %d was received as number %d", m.Seq, got)
					}
				}
			})
			if allocated != 0 || got+uint64(waiting) != came {
				t.Errorf("%v allocations for each message; got %d of %d", allocated, got, came)
			}
		})
	}
}

// TestEmptyBoxKeepsLittleSpace checks that a Box releases the memory for a burst of messages.
func TestEmptyBoxKeepsLittleSpace(t *testing.T) {
	var b Box
	for range 10 * spaceKept {
		b.Keep(Message{})
	}
	for range 10 * spaceKept {
		b.take(0)
	}
	if kept := cap(b.space) + cap(b.messages); kept > 2*spaceKept {
		t.Errorf("an empty Box has space for %d messages", kept)
	}
}

// TestPostedReceivesNeedNoMemory checks that posting a receive, matching it and withdrawing it allocate nothing, whatever
// number of receives is posted.
func TestPostedReceivesNeedNoMemory(t *testing.T) {
	for _, posted := range []int{0, 1, 100} {
		var b Box
		for range posted {
			b.Post(&Recv{Source: 2, Tag: 0}, true)
		}
		r := &Recv{Source: 1, Tag: 0}
		if n := testing.AllocsPerRun(100, func() {
			b.Post(r, true)
			if b.Claim(1, 0) != r {
				t.Fatal("the header did not find the posted receive")
			}
			b.Post(r, true)
			if got, _, _ := b.Arrive(Message{Source: 1}, true); got != r {
				t.Fatal("the message did not find the posted receive")
			}
			b.Post(r, true)
			b.Withdraw(r)
		}); n != 0 || r.Posted() {
			t.Errorf("%d receives are posted: %v allocations", posted, n)
		}
	}
}

// TestHasFindsMessages checks the names of few and of many unexpected messages, while messages come and go.
func TestHasFindsMessages(t *testing.T) {
	for _, n := range []uint64{3, 10 * fewMessages} {
		var b Box
		for seq := range n {
			b.Keep(Message{Source: 1, Seq: seq})
		}
		b.Has(1, 0)
		b.Take(AnySource, AnyTag)
		b.Keep(Message{Source: 2, Seq: 7})
		b.Remove(func(m *Message) bool { return m.Seq == 1 })
		for _, want := range []struct {
			name
			has bool
		}{{name{1, 0}, false}, {name{1, 1}, false}, {name{1, 2}, true}, {name{2, 7}, true}, {name{2, 2}, false}} {
			if got := b.Has(want.source, want.seq); got != want.has {
				t.Errorf("%d messages: has %v: %v, want %v", n, want.name, got, want.has)
			}
		}
		if last := b.Last().name(); last != (name{2, 7}) {
			t.Errorf("the last message is %v", last)
		}
	}
}

// TestRemoveKeepsOrder checks that Remove keeps the other messages, and rewinds a queue that it has emptied.
func TestRemoveKeepsOrder(t *testing.T) {
	var b Box
	for seq := range uint64(9) {
		b.Keep(Message{Seq: seq})
	}
	b.Remove(func(m *Message) bool { return m.Seq%3 != 1 })
	for _, want := range []uint64{1, 4, 7} {
		if m, ok := b.Take(AnySource, AnyTag); !ok || m.Seq != want {
			t.Errorf("got message %d, %v; want %d", m.Seq, ok, want)
		}
	}
	b.Keep(Message{})
	b.Remove(func(*Message) bool { return true })
	if !b.Quiet() || cap(b.messages) == 0 {
		t.Error("an emptied Box contains messages, or has lost its space")
	}
}

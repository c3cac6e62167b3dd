package engine

import (
	"fmt"
	"testing"

	"github.com/p2pmpi/p2pmpi/internal/protection"
)

// TestUnexpectedMessagesKeepOrderInBoundedSpace checks that messages that arrive and are received in
// order stay in order, and need no new memory once the mailbox has room for them, whatever number of
// messages waits.
func TestUnexpectedMessagesKeepOrderInBoundedSpace(t *testing.T) {
	for _, waiting := range []int{0, 1, 2, 7, 100} {
		t.Run(fmt.Sprint(waiting), func(t *testing.T) {
			var (
				b         mailbox
				came, got uint64
				wildcard  = &Request{source: AnySource, tag: AnyTag}
			)
			arrive := func() { came++; b.add(message{Message: protection.Message{Seq: came}}) }
			for range waiting {
				arrive()
			}
			allocated := testing.AllocsPerRun(1000, func() {
				arrive()
				if m, ok := b.find(wildcard); ok {
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

// TestEmptyMailboxKeepsLittleSpace checks that a mailbox releases the memory for a burst of
// messages.
func TestEmptyMailboxKeepsLittleSpace(t *testing.T) {
	var b mailbox
	for range 10 * spaceKept {
		b.add(message{})
	}
	for range 10 * spaceKept {
		b.removeMessage(0)
	}
	if kept := cap(b.space) + cap(b.unexpected); kept > 2*spaceKept {
		t.Errorf("an empty mailbox has space for %d messages", kept)
	}
}
